"""The model's forward and backward pass replayed as CUDA graphs, and nothing compiled.

Where a GPU works off kernels faster than Python queues them, most of what `compile` wins is that
they are queued at once. That alone needs no compiler: a pass is recorded within seconds, so that
it pays in short trainings too.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import (
    MUCH_FASTER,
    NO_MODEL,
    Effect,
    Expectation,
    Group,
    Lever,
    Receipt,
    Seen,
    refuse,
)
from hotloop.levers.compile import LEAST_IDLE
from hotloop.levers.in_place import compile_in_place, is_compiled
from hotloop.levers.recorded_passes import RecordedPasses
from hotloop.levers.replaying import BareRecorder, Recorder

if TYPE_CHECKING:
    from hotloop.seams import Seams

QUEUEING = 0.5
"""Of the passes' time that the GPU spends waiting for the CPU. Assumed."""

AT_FIRST = 3
"""Calls of a pass that run as they are before one can be replayed."""

Call = Callable[..., Any]


@dataclass
class ModelGraph(Lever):
    name = "model_graph"
    summary = "the model's passes as CUDA graphs, replayed; nothing is compiled"
    group = Group.GRAPH
    effect = Effect.SAME_MATH
    not_for_memory = "recorded graphs hold their memory between steps"
    compiles = True
    only_captures = True
    conflicts = ("compile", "compile_blocks", "step_graph")

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._backends: list[RecordedPasses] = []
        """One for each model."""
        self._others = 0
        """Training calls with other sizes than those that are replayed."""
        self._models: weakref.WeakSet[Any] = weakref.WeakSet()
        self._why_not = NO_MODEL

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        share = seen.share("forward", "backward") * QUEUEING
        if not seen.on_gpu:
            return refuse("CUDA graphs need a GPU")
        if seen.is_compiled:
            return refuse("the script already compiles its model")
        if not seen.measurement.inventory.models:
            return refuse(NO_MODEL)
        if seen.gpu_idle < LEAST_IDLE:
            return Expectation(share, worth_from=MUCH_FASTER)
        return Expectation(share)

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch = torch
        seams.model.before.append(self._call)

    def receipt(self) -> Receipt:
        made = [tally for backend in self._backends for tally in backend.tallies]
        if not made:
            told = [backend.why_not for backend in self._backends if backend.why_not]
            return self.not_applied(told[0] if told else self._why_not)
        replayed, others = sum(one.replayed for one in made), sum(one.others for one in made)
        reasons = [one.reason for one in made if one.reason]
        if not replayed:
            few = "there were too few steps to record one"
            often = "torch captures it anew again and again, or its weights move"
            why = reasons[0] if reasons else few if others <= AT_FIRST * len(made) else often
            return self.not_applied(f"no pass was replayed: {why}")
        if others + self._others > replayed + AT_FIRST * len(made):
            return self.not_applied(reasons[0] if reasons else "most passes differ from the first")
        graphs = sum(one.recorded for one in made)
        return self.applied(
            graphs=graphs, replays=replayed, as_they_are=others, other_shapes=self._others
        )

    def recorder(self, weight: Any) -> Recorder | None:
        """None where there is nothing to record."""
        is_there = weight is not None and weight.is_cuda
        return BareRecorder(self._torch, weight.device, is_large=True) if is_there else None

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        module = args[0]
        if module in self._models or not self._torch.is_grad_enabled():
            return
        self._models.add(module)
        recorder = self.recorder(next(module.parameters(), None))
        if recorder is None:
            self._why_not = "the model is not on a GPU"
        elif is_compiled(module):
            self._why_not = "the script already compiles its model"
        else:
            self._why_not = "no two batches in a row are tensors of the same sizes"
            backend = RecordedPasses(self._torch, recorder)
            self._backends.append(backend)
            weakref.finalize(module, backend.let_go).atexit = False
            # Sizes are told apart below: for each that came torch would capture the model anew.
            compile_in_place(self._torch, module, self._around, backend=backend, dynamic=False)

    def _around(self, plain: Call, compiled: Callable[[Call], Call]) -> Call:
        return Passes(self._torch, plain, compiled(_of_its_own(plain)), self._count_other)

    def _count_other(self) -> None:
        self._others += 1


def _of_its_own(call: Call) -> Call:
    """torch keeps what it has captured with the code of a function, for all who share that. Models
    that are alike would share a recording, which knows the weights of one."""
    assert isinstance(call, FunctionType)
    code, closure = call.__code__.replace(), call.__closure__
    return FunctionType(code, call.__globals__, call.__name__, call.__defaults__, closure)


class Passes:
    """Stands in for a model's call: training on batches of the sizes that came twice in a row, as
    the first ones, is replayed.

    Evaluation, and an epoch's last, shorter batch, run as they are.
    """

    def __init__(self, torch: Any, plain: Call, replayed: Call, other: Callable[[], None]) -> None:
        self._torch = torch
        self._plain = plain
        self._replayed = replayed
        self._tell_other = other
        self._sizes: Any = None
        self._are_settled = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._torch.is_grad_enabled():
            return self._plain(*args, **kwargs)
        sizes = _sizes(self._torch, (args, kwargs))
        if sizes == self._sizes:
            self._are_settled = True
            return self._replayed(*args, **kwargs)
        if self._are_settled:
            self._tell_other()
        else:
            self._sizes = sizes
        return self._plain(*args, **kwargs)


def _sizes(torch: Any, value: Any) -> Any:
    """Of every tensor in what a model is given, and all else that it may be captured anew for."""
    if isinstance(value, torch.Tensor):
        return value.shape
    if isinstance(value, dict):
        return tuple((key, _sizes(torch, part)) for key, part in value.items())
    if isinstance(value, list | tuple):
        return tuple(_sizes(torch, part) for part in value)
    is_known = value is None or isinstance(value, bool | int | float | str)
    return value if is_known else object()  # which may hold anything, and is like no other
