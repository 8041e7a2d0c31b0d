"""Which lines take memory that they do not give back: Python's objects, and NumPy's arrays.

`tracemalloc` knows which line asked for each block that is held. What every step takes and gives
back is the same at the end of each, so what differs between two steps is what grows.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from linecache import getline
from typing import Any

from hotloop.depth import DepthReport, MemoryGrowth, MemoryLine
from hotloop.inspection import Frame
from hotloop.runtime.deep.turn import Turn
from hotloop.runtime.look.frames import Frames
from hotloop.runtime.tracebacks import OURS

DEEPEST = 12
"""Frames that are kept of each block: a library often asks for it, far below the user's line."""
SETTLING = 2
"""Steps before the first of the two, so that all that is held for a while was met once."""
LEAST_BYTES = 64
"""Less, over all the steps, is a counter that needs one more digit."""

Place = tuple[str, int]
Held = dict[Place, tuple[int, int]]
"""Bytes and blocks, by the line that asked for them."""


class GrowthTurn(Turn):
    what = "memory growth by line"
    _before: Held | None = None
    _growth: MemoryGrowth | None = None
    _made = 0

    @property
    def steps(self) -> int:
        return SETTLING + max(self._deep.steps // 2, 1)

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

    def _held(self) -> Held:
        import tracemalloc

        gc.collect()  # what only holds itself is not held
        held: Held = defaultdict(lambda: (0, 0))
        for trace in tracemalloc.take_snapshot().statistics("traceback"):
            place = self._place(list(trace.traceback))
            if place is not None:
                size, count = held[place]
                held[place] = size + trace.size, count + trace.count
        return held

    def _place(self, frames: list[Any]) -> Place | None:
        """The innermost line of the user's; else the innermost. None for what is our own doing."""
        if not frames or frames[-1].filename.startswith((OURS, "<frozen")):
            return None
        is_users = self._frames.is_users
        users = (frame for frame in reversed(frames) if is_users(frame.filename))
        frame = next(users, frames[-1])
        return frame.filename, frame.lineno


def growth(
    before: Mapping[Place, tuple[int, int]], after: Mapping[Place, tuple[int, int]], frames: Frames
) -> list[MemoryLine]:
    """The largest first."""
    lines = []
    for (file, line), (size, count) in after.items():
        size_before, count_before = before.get((file, line), (0, 0))
        if size - size_before >= LEAST_BYTES:
            text = getline(file, line).strip()[:200]
            place = Frame(file, line, "", frames.is_users(file), text)
            lines.append(MemoryLine(place, size - size_before, count - count_before))
    return sorted(lines, key=lambda line: -line.bytes)
