"""Spans of time on one clock, in nanoseconds: when nothing ran, and what was going on then."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TypeVar

from hotloop.inspection import Kernels

Span = tuple[int, int]
T = TypeVar("T")

PAUSE_NS = 4_000
"""A GPU needs a microsecond or two from one kernel to the next, however many are queued. What is
no longer than that is not idling."""


def gaps(kernels: Kernels) -> list[Span]:
    """Times in the window at which nothing ran. Streams overlap, so ends are not in order."""
    found = []
    free_from = kernels.begin_ns
    for start, duration in sorted(zip(kernels.start_ns, kernels.duration_ns, strict=True)):
        if start > free_from + PAUSE_NS:
            found.append((free_from, min(start, kernels.end_ns)))
        free_from = max(free_from, start + duration)
    found.append((free_from, kernels.end_ns))
    return [(begin, end) for begin, end in found if end > begin]


def split(span: Span, times: list[int], what: Sequence[T], before: T) -> Iterator[tuple[Span, T]]:
    """A span, cut at these times. `what[i]` holds from `times[i]` on, `before` before the first."""
    begin, end = span
    place = bisect_right(times, begin) - 1
    while begin < end:
        until = min(times[place + 1], end) if place + 1 < len(times) else end
        if until > begin:
            yield (begin, until), what[place] if place >= 0 else before
        begin, place = max(until, begin), place + 1


def length(spans: Sequence[Span]) -> float:
    """In seconds."""
    return sum(end - begin for begin, end in spans) / 1e9
