"""A whole step as one graph: inputs copied into buffers that stay, and everything else replayed.

The first steps run as they are, on a stream of their own, as CUDA wants it before a capture; in the
last of them torch says whether anything waits for the device, which no graph can hold. Then a step
is captured. A batch of another shape, such as a short last one, runs as it is.

Gradients are made anew in the capture, as in any step: a replay then writes where they lie. Kept
from before, each would be cleared and added to, two kernels for every weight of the model.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Mapping
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Protocol

from hotloop.collecting import no_collection
from hotloop.levers.replaying import said_by

if TYPE_CHECKING:
    from hotloop.seams import Seams

WAITS = "synchronizing CUDA operation"
"""What torch says of one, when it is asked to warn."""

Compute = Callable[[Any, int], Any]


class Recorder(Protocol):
    """How graphs are made. CUDA's, or a fake where there is no GPU."""

    def aside(self, work: Callable[[], Any]) -> Any:
        """`work`, run as it is, in the way that a capture needs to have seen before."""

    def waits(self, work: Callable[[], Any]) -> tuple[Any, str]:
        """The same, and where it waits for the device; empty when it does not."""

    def record(self, work: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
        """What replays `work`, which is recorded and not run; and what it hands back."""


class CudaRecorder:
    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._stream: Any = None

    def aside(self, work: Callable[[], Any]) -> Any:
        cuda = self._torch.cuda
        self._stream = self._stream or cuda.Stream()
        self._stream.wait_stream(cuda.current_stream())
        with cuda.stream(self._stream):
            made = work()
        cuda.current_stream().wait_stream(self._stream)
        return made

    def waits(self, work: Callable[[], Any]) -> tuple[Any, str]:
        cuda = self._torch.cuda
        before = cuda.get_sync_debug_mode()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            cuda.set_sync_debug_mode("warn")
            try:
                made = self.aside(work)
            finally:
                cuda.set_sync_debug_mode(before)
        found = [one for one in said if WAITS in str(one.message)]
        return made, f"{found[0].filename}:{found[0].lineno}" if found else ""

    def record(self, work: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
        graph = self._torch.cuda.CUDAGraph()
        gc.collect()  # giving up an older graph would spoil the capture
        with no_collection(), self._torch.cuda.graph(graph):
            made = work()
        return graph.replay, made


class GraphedStep:
    """Stands in for a loop's `compute`."""

    def __init__(
        self, torch: Any, loop: Any, recorder: Recorder, seams: Seams, warm_up: int
    ) -> None:
        self.replays = self.others = 0
        """Steps replayed, and steps on batches of other shapes."""
        self.reason = ""
        """Why steps run as they are."""
        self._torch = torch
        self._loop = loop
        self._plain: Compute = loop.compute
        self._recorder = recorder
        self._seams = seams
        self._left = warm_up
        self._shape: Any = None
        self._buffers: Any = None
        self._replay: Callable[[], None] | None = None
        self._loss: Any = None
        self._gradients: list[tuple[Any, Any]] = []

    def __call__(self, batch: Any, rows: int) -> Any:
        if self.reason:
            return self._plain(batch, rows)
        if self._replay is None:
            return self._begin(batch, rows)
        if _shape(self._torch, batch) != self._shape:
            self.others += 1
            return self._plain(batch, rows)
        _copy(self._torch, self._buffers, batch)
        return self._run(self._replay)

    def _begin(self, batch: Any, rows: int) -> Any:
        self._left -= 1
        if self._left > 0:
            return self._recorder.aside(lambda: self._plain(batch, rows))
        if self._left == 0:
            loss, place = self._recorder.waits(lambda: self._plain(batch, rows))
            self.reason = f"the step waits for the GPU, at {place}" if place else ""
            return loss
        return self._record(batch, rows)

    def _record(self, batch: Any, rows: int) -> Any:
        self._shape = _shape(self._torch, batch)
        self._buffers = _cloned(self._torch, batch)
        try:
            # What is recorded has not happened yet: it is told when it is replayed.
            with self._seams.unwatched():
                replay, loss = self._recorder.record(lambda: self._plain(self._buffers, rows))
        except Exception as error:  # whatever a capture does not bear
            self.reason = f"the job's step cannot be captured: {said_by(error)}"
            return self._plain(batch, rows)
        self._replay, self._loss = replay, loss.detach()
        learned = [p for group in self._loop.optimizer.param_groups for p in group["params"]]
        self._gradients = [(p, p.grad) for p in learned]
        return self._run(replay)

    def _run(self, replay: Callable[[], None]) -> Any:
        """Nothing that a graph holds passes a seam. Its backward pass and its step are told."""
        seams, optimizer = self._seams, self._loop.optimizer
        for tell in seams.step.before:
            tell((optimizer,), {})
        for parameter, gradient in self._gradients:
            parameter.grad = gradient  # somebody may have put another there
        began = perf_counter_ns()
        replay()
        self.replays += 1
        loss = self._loss.clone()  # the next replay writes the same place
        for tell_after in seams.backward.after:
            tell_after((loss,), None, began)
        began = perf_counter_ns()
        for tell_after in seams.step.after:
            tell_after((optimizer,), None, began)
        return loss


def _shape(torch: Any, value: Any) -> Any:
    """What a graph is made for: the kind, format and size of everything in a batch."""
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.dtype, value.stride()
    if isinstance(value, Mapping):
        return tuple((name, _shape(torch, part)) for name, part in value.items())
    if isinstance(value, list | tuple):
        return tuple(_shape(torch, part) for part in value)
    return repr(value)


def _cloned(torch: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, Mapping):
        return {name: _cloned(torch, part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        inner = [_cloned(torch, part) for part in value]
        return type(value)(*inner) if hasattr(value, "_fields") else type(value)(inner)
    return value


def _copy(torch: Any, to: Any, value: Any) -> None:
    if isinstance(value, torch.Tensor):
        to.copy_(value)
    elif isinstance(value, Mapping):
        for name, part in value.items():
            _copy(torch, to[name], part)
    elif isinstance(value, list | tuple):
        for each, part in zip(to, value, strict=True):
            _copy(torch, each, part)
