"""Fewer points of a long series, without losing what it shows."""

from __future__ import annotations

from collections.abc import Sequence

MOST_POINTS = 300
"""Of a curve that is drawn: more than that no screen can show."""


def thinned(
    points: Sequence[tuple[int, float]], most: int = MOST_POINTS
) -> list[tuple[int, float]]:
    """The lowest and the highest of every stretch, in order: no peak is lost."""
    if len(points) <= most:
        return list(points)
    stretches = max(1, most // 2)
    kept: list[tuple[int, float]] = []
    for number in range(stretches):
        first = number * len(points) // stretches
        stretch = points[first : (number + 1) * len(points) // stretches]
        ends = {min(stretch, key=lambda one: one[1]), max(stretch, key=lambda one: one[1])}
        kept += sorted(ends)
    return kept
