"""Work on tensors that stay where they are, recorded as graphs and replayed.

A graph reads and writes the places in memory that it was recorded with. So each is kept by these
places: where something lies elsewhere, the work is done as it is, and recorded when it comes there
again. torch's allocator hands out the same places as long as the same is asked of it.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from hotloop.collecting import no_collection

KEPT = 4
"""Graphs at a time: gradients of an epoch's last, smaller batch may lie elsewhere."""
MOST = 16
"""Recordings at all. They take a while; what needs more of them gains nothing."""
ENOUGH = 8
"""Of them, until it is clear that what lies where it lay will not do so for long."""
REMEMBERED = 8
"""Places that were met last."""


class Recorder(Protocol):
    """How a graph is made. CUDA's, or a fake where there is no GPU."""

    @property
    def is_free(self) -> bool:
        """Whether nobody else is recording, into whose graph a replay would go."""

    def bears(self, tensor: Any) -> bool:
        """Whether work on it can be recorded."""

    def record(self, work: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
        """What replays `work`, which is recorded and not run; and what it hands back."""


class BareRecorder:
    """By the bare calls: torch's context would empty the allocator's cache, after which gradients
    would lie elsewhere."""

    def __init__(self, torch: Any, device: Any, is_large: bool = False) -> None:
        """`is_large`: what is recorded takes memory of which much may lie in that cache."""
        self._torch = torch
        self._device = device
        self._is_large = is_large
        self._stream: Any = None
        """One for all recordings: products keep room for their work with each stream, for good."""

    @property
    def is_free(self) -> bool:
        return not self._torch.cuda.is_current_stream_capturing()

    def bears(self, tensor: Any) -> bool:
        """What lies on another device would not be recorded, but done at once; and where a tensor
        of another class lies, it does not say."""
        plain = type(tensor) is self._torch.Tensor and tensor.layout is self._torch.strided
        return plain and tensor.device == self._device

    def record(self, work: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
        cuda = self._torch.cuda
        graph, pool = cuda.CUDAGraph(), cuda.graph_pool_handle()
        self._stream = self._stream or cuda.Stream(self._device)
        gc.collect()  # giving up an older graph would spoil the recording
        cuda.synchronize(self._device)
        if self._is_large:
            cuda.empty_cache()
        with no_collection(), cuda.stream(self._stream):  # whose device is the current one then
            # Other threads, such as one that pins batches, go on as ever.
            graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                made = work()
                graph.capture_end()
            except BaseException:
                self._abandon(graph, pool)
                raise
        return graph.replay, made

    def _abandon(self, graph: Any, pool: Any) -> None:
        """A capture that has failed does not end: torch would go on as if it were under way, and
        give back no memory that another stream has used, nor draw random numbers outside it."""
        try:
            graph.capture_end()
        except Exception:  # which says less than the error that it failed with
            index = self._device.index or 0
            with suppress(Exception):
                self._torch._C._cuda_endAllocateToPool(index, pool)
                # Where that had ended before, the pool is the graph's to release: if it is done
                # twice, the process ends as the graph goes.
                self._torch._C._cuda_releasePool(index, pool)
            with suppress(Exception):
                self._record_nothing()

    def _record_nothing(self) -> None:
        """A recording that ends as it should leaves the random generator as it should be."""
        cuda = self._torch.cuda
        graph = cuda.CUDAGraph()
        with cuda.stream(cuda.Stream(self._device)):
            graph.capture_begin(capture_error_mode="thread_local")
            self._torch.zeros(1, device=self._device)
            graph.capture_end()


@dataclass
class Tally:
    """What became of some work. It outlives the graphs, which hold memory of the GPU."""

    replayed: int = 0
    others: int = 0
    """Done as it is."""
    recorded: int = 0
    reason: str = ""
    """Why it cannot be recorded."""


class Replays:
    def __init__(self, recorder: Recorder) -> None:
        self.tally = Tally()
        self._recorder = recorder
        self._met: deque[Hashable] = deque(maxlen=REMEMBERED)
        self._graphs: dict[Hashable, tuple[Callable[[], None], Any]] = {}

    @property
    def is_spent(self) -> bool:
        """Whether no more graphs are recorded."""
        return bool(self.tally.reason) or self.tally.recorded == MOST

    def bears(self, tensors: list[Any]) -> bool:
        """Whether work on these can be replayed, now."""
        is_free = bool(tensors) and self._recorder.is_free
        return is_free and all(map(self._recorder.bears, tensors))

    def as_it_is(self, work: Callable[[], Any]) -> Any:
        self.tally.others += 1
        return work()

    def run(
        self,
        places: Hashable,
        work: Callable[[], Any],
        recorded: Callable[[], Any],
        first: Callable[[], None] = lambda: None,
    ) -> Any:
        """`recorded`: the same work, in the way that is recorded. `first`: goes before a replay."""
        try:
            graph = self._graphs.get(places) or self._record(places, recorded)
        except TypeError:  # something in it has no hash: settings may be anything
            graph = None
        if graph is None:
            return self.as_it_is(work)
        first()
        replay, made = graph
        replay()
        self.tally.replayed += 1
        return None if made is None else made.clone()  # the next replay writes the same place

    def _record(
        self, places: Hashable, work: Callable[[], Any]
    ) -> tuple[Callable[[], None], Any] | None:
        if self.is_spent:
            return None
        if places not in self._met:
            self._met.append(places)
            return None
        try:
            graph = self._recorder.record(work)
        except Exception as error:  # whatever a recording does not bear
            self.tally.reason = f"it cannot be captured: {said_by(error)}"
            return None
        if len(self._graphs) == KEPT:
            del self._graphs[next(iter(self._graphs))]
        self._graphs[places] = graph
        self.tally.recorded += 1
        return graph


def said_by(error: Exception) -> str:
    """Its first line: CUDA's have many."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
