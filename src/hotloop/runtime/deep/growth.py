"""Which lines take memory that they do not give back, by tracing every object of a few steps.

`tracemalloc` knows where Python took each block of memory. A tensor's bytes are not Python's, but
its handle is: where that was made, the tensor was. So tensors that Python still holds are counted
by line too.
"""

from __future__ import annotations

import contextlib
import gc
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from linecache import getline
from typing import Any

from hotloop.depth import DepthReport, MemoryGrowth, MemoryLine
from hotloop.inspection import Frame
from hotloop.runtime.deep.turn import Turn
from hotloop.runtime.look.frames import Frames
from hotloop.runtime.tracebacks import OURS

DEEPEST = 12
"""Frames that are kept of each block: a tensor is often made far below the user's own line."""
SETTLING = 2
"""Steps after which every step gives back what the one before took."""
LEAST_BYTES = 64
"""Less, over all the steps, is a counter that needs one more digit."""

Place = tuple[str, int]


@dataclass
class Held:
    python_bytes: int = 0
    objects: int = 0
    tensor_bytes: int = 0
    tensors: int = 0


class GrowthTurn(Turn):
    what = "memory growth by line"
    _before: dict[Place, Held] | None = None
    _growth: MemoryGrowth | None = None
    _made = 0

    @property
    def steps(self) -> int:
        return SETTLING + self._deep.steps

    def begin(self) -> None:
        import tracemalloc

        self._frames = Frames()
        self._was_tracing = tracemalloc.is_tracing()
        if not self._was_tracing:
            tracemalloc.start(DEEPEST)

    def stepped(self) -> None:
        self._made += 1
        if self._made == SETTLING:
            self._before = self._held()

    def end(self, steps: int) -> None:
        import tracemalloc

        try:
            if self._before is not None and steps > SETTLING:
                lines = growth(self._before, self._held(), self._frames)
                self._growth = MemoryGrowth(steps - SETTLING, lines)
        finally:
            self._before = None
            if not self._was_tracing:
                tracemalloc.stop()
        if self._growth is None:
            raise RuntimeError(f"the training ended {steps} steps after tracing began, too soon")

    def told(self, report: DepthReport) -> DepthReport:
        return replace(report, growth=self._growth)

    def _held(self) -> dict[Place, Held]:
        """By the line that took it, at this moment."""
        import tracemalloc

        gc.collect()  # what only holds itself is not held
        held: dict[Place, Held] = defaultdict(Held)
        for trace in tracemalloc.take_snapshot().statistics("traceback"):
            place = self._place(trace.traceback)
            if place is not None:
                held[place].python_bytes += trace.size
                held[place].objects += trace.count
        for tensor, size in _tensors(self._torch):
            traceback = tracemalloc.get_object_traceback(tensor)
            place = self._place(traceback) if traceback else None
            if place is not None:
                held[place].tensor_bytes += size
                held[place].tensors += 1
        return held

    def _place(self, traceback: Any) -> Place | None:
        """The innermost line of the user's; else the innermost. None for what is our own doing."""
        frames = list(traceback)
        if not frames or frames[-1].filename.startswith((OURS, "<frozen")):
            return None
        is_users = self._frames.is_users
        users = (frame for frame in reversed(frames) if is_users(frame.filename))
        frame = next(users, frames[-1])
        return frame.filename, frame.lineno


def growth(before: dict[Place, Held], after: dict[Place, Held], frames: Frames) -> list[MemoryLine]:
    """The largest first."""
    lines = []
    for place, now in after.items():
        was = before.get(place, Held())
        file, line = place
        grown = MemoryLine(
            place=Frame(file, line, "", frames.is_users(file), getline(file, line).strip()[:200]),
            python_bytes=now.python_bytes - was.python_bytes,
            objects=now.objects - was.objects,
            tensor_bytes=now.tensor_bytes - was.tensor_bytes,
            tensors=now.tensors - was.tensors,
        )
        if grown.bytes >= LEAST_BYTES:
            lines.append(grown)
    return sorted(lines, key=lambda line: -line.bytes)


def _tensors(torch: Any) -> Iterator[tuple[Any, int]]:
    """Those that Python holds, each storage once, with its size."""
    met: set[int] = set()
    for thing in gc.get_objects():
        if issubclass(type(thing), torch.Tensor):
            with contextlib.suppress(Exception):  # sparse, fake, or somebody's own kind of tensor
                storage = thing.untyped_storage()
                if storage.data_ptr() not in met:
                    met.add(storage.data_ptr())
                    yield thing, storage.nbytes()
