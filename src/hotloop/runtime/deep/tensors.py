"""Which lines make tensors that are not given back, on whichever device.

A tensor's memory is not Python's. So every operator's results are followed, by weak references to
the memory they lie in: that also finds what only autograd still holds, because the script keeps a
loss and with it everything that led to it.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

from hotloop.depth import DepthReport, MemoryGrowth
from hotloop.runtime.deep.growth import SETTLING, Held, Place, growth
from hotloop.runtime.deep.turn import Turn
from hotloop.runtime.look.frames import Frames


@dataclass(frozen=True)
class _Made:
    reference: Any
    place: Place
    size: int


class TensorTurn(Turn):
    what = "growth of tensors by line"
    _before: Held | None = None
    _growth: MemoryGrowth | None = None
    _mode: Any = None

    @property
    def steps(self) -> int:
        return SETTLING + max(self._deep.steps // 2, 1)

    def begin(self) -> None:
        from torch.multiprocessing.reductions import StorageWeakRef

        self._reference = StorageWeakRef
        self._frames = Frames()
        self._alive: dict[int, _Made] = {}
        self._made = 0
        self._is_compiled = "torch._dynamo" in sys.modules
        if self._is_compiled:  # inside compiled code no operator is seen
            self._torch.compiler.set_stance("force_eager")
        self._mode = _mode(self._see)
        self._mode.__enter__()

    def stepped(self) -> None:
        self._made += 1
        self._forget_the_dead()
        if self._made == SETTLING:
            self._before = self._held()

    def end(self, steps: int) -> None:
        self._mode.__exit__(None, None, None)
        if self._is_compiled:
            self._torch.compiler.set_stance("default")
        if self._before is None or steps <= SETTLING:
            raise RuntimeError(f"the training ended {steps} steps after counting began, too soon")
        lines = growth(self._before, self._held(), self._frames)
        self._growth = MemoryGrowth(steps - SETTLING, lines)
        self._alive.clear()

    def told(self, report: DepthReport) -> DepthReport:
        return replace(report, tensor_growth=self._growth)

    def _see(self, results: Any) -> None:
        for tensor in results if isinstance(results, list | tuple) else (results,):
            if isinstance(tensor, self._torch.Tensor):
                with contextlib.suppress(Exception):  # sparse, or somebody's own kind of tensor
                    self._follow(tensor.untyped_storage())

    def _follow(self, storage: Any) -> None:
        known = self._alive.get(storage._cdata)
        if known is not None and not known.reference.expired():
            return  # a view, or a result that lies where it lay before
        number = self._frames.line(sys._getframe(2))
        if number is not None:
            frame = self._frames.known[number]
            made = _Made(self._reference(storage), (frame.file, frame.line), storage.nbytes())
            self._alive[storage._cdata] = made

    def _forget_the_dead(self) -> None:
        alive = self._alive.items()
        self._alive = {place: made for place, made in alive if not made.reference.expired()}

    def _held(self) -> Held:
        gc.collect()
        self._forget_the_dead()
        held: Held = defaultdict(lambda: (0, 0))
        for made in self._alive.values():
            size, count = held[made.place]
            held[made.place] = size + made.size, count + 1
        return held


def _mode(see: Any) -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Following(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            results = function(*args, **(kwargs or {}))
            see(results)
            return results

    return Following()
