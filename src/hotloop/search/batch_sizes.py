"""Which batch size is fastest: by doubling, then by refining, and only by what was really run.

A size counts when its trial came to its end. One that ran out of memory, at the first step or at
the last, is a point of the curve too, with its reason and without a rate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

GAIN = 0.03
"""Of the rate. Twice the size that wins less is no longer worth its memory."""
PATIENCE = 2
"""Doublings in a row without gain, after which the plateau is believed."""
REFINEMENTS = 3
COARSE = 8
"""Sizes between are multiples of it, where they are much larger."""


@dataclass(frozen=True)
class SizePoint:
    size: int
    rate: float | None
    """Samples a second; None where the trial did not come to its end."""
    memory: int | None = None
    """Bytes at the peak: of the device, or of the host where there is none."""
    reason: str = ""
    """Why there is no rate."""


@dataclass(frozen=True)
class Curve:
    points: tuple[SizePoint, ...]
    """In order of size."""

    @property
    def best(self) -> SizePoint | None:
        """The fastest of all that were run to the end."""
        ran = [point for point in self.points if point.rate is not None]
        return max(ran, key=lambda point: point.rate or 0.0, default=None)

    @property
    def plateau(self) -> SizePoint | None:
        """Where it begins: the smallest size that is as fast as the fastest, within GAIN."""
        best = self.best
        if best is None or best.rate is None:
            return None
        enough = best.rate / (1 + GAIN)
        return next(p for p in self.points if p.rate is not None and p.rate >= enough)


Run = Callable[[int], SizePoint]
"""Runs one trial with this batch size."""


def explore(start: SizePoint, run: Run, most: int | None = None) -> Curve:
    """`start`: the job's own size, as it was measured. `most`: no batch can be larger."""
    search = _Search(start, run, most)
    search.double()
    if search.best.size == start.size:
        search.halve()
    search.refine()
    return search.curve


class _Search:
    def __init__(self, start: SizePoint, run: Run, most: int | None) -> None:
        self._points = {start.size: start}
        self._start = start.size
        self._run = run
        self._most = most

    @property
    def curve(self) -> Curve:
        return Curve(tuple(point for _, point in sorted(self._points.items())))

    @property
    def best(self) -> SizePoint:
        return self.curve.best or self._points[self._start]

    def double(self) -> None:
        size, idle = self._start * 2, 0
        while idle < PATIENCE and (self._most is None or size <= self._most):
            before = self.best.rate or 0.0
            point = self._try(size)
            if point.rate is None:
                return
            idle = 0 if point.rate > before * (1 + GAIN) else idle + 1
            size *= 2

    def halve(self) -> None:
        """Only where larger sizes win nothing: a cache may hold a smaller batch."""
        size = self._start // 2
        while size:
            before = self.best.rate or 0.0
            rate = self._try(size).rate
            if rate is None or rate <= before * (1 + GAIN):
                return
            size //= 2

    def refine(self) -> None:
        """Between the best and its neighbours; towards what failed, up to what still fits."""
        for _ in range(REFINEMENTS):
            size = self._between()
            if size is None:
                return
            self._try(size)

    def _between(self) -> int | None:
        sizes, best = sorted(self._points), self.best.size
        at = sizes.index(best)
        above = sizes[at + 1 : at + 2]
        below = sizes[max(at - 1, 0) : at]
        for neighbour in (*above, *below):
            size = _rounded((best + neighbour) // 2)
            if size not in self._points and min(best, neighbour) < size < max(best, neighbour):
                return size
        return None

    def _try(self, size: int) -> SizePoint:
        if size not in self._points:
            self._points[size] = self._run(size)
        return self._points[size]


def _rounded(size: int) -> int:
    return size - size % COARSE if size >= 2 * COARSE else size
