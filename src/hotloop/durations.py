"""How long each step took, and nothing else: what `timeline` says of it, many times sooner.

A search asks this of every trial, a report of all of them at once. Where a step's time went is
asked of few trials, and costs a look at every single event.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import sub

from hotloop import timeline
from hotloop.measurement import Events, Kind


def step_seconds(events: Events, ends: list[int]) -> list[float]:
    """Every complete step of the run, in order, warm-up included, without evaluation.

    `ends`: the events that end one, as `timeline.step_ends` finds them.
    """
    if not ends:
        return []
    at = [events.time_ns[0], *map(events.time_ns.__getitem__, ends)]
    nanoseconds = list(map(sub, at[1:], at))
    for first, last in _pauses(events, ends):
        _take_away(nanoseconds, events.time_ns, ends, first, last)
    return [length / 1e9 for length in nanoseconds]


def batches(events: Events, ends: list[int], warm: int, delivered: list[int]) -> int:
    """That were loaded for the steps after the first `warm`. Evaluation's own are not counted.

    `delivered`: the events at which a loader has answered.
    """
    if not ends:
        return 0
    begin = ends[warm - 1] if warm else 0
    pauses = _pauses(events, ends)
    starts = [first for first, _ in pauses]
    loaded = [at for at in delivered if begin <= at < ends[-1]]
    real = [at for at in loaded if events.n[at] >= 0]
    if not pauses:
        return len(real)
    window = [bisect_right(starts, at) - 1 for at in real]
    return sum(place < 0 or at >= pauses[place][1] for place, at in zip(window, real, strict=True))


def _pauses(events: Events, ends: list[int]) -> list[tuple[int, int]]:
    if int(Kind.NO_GRAD_BEGIN) not in events.kind:
        return []
    return timeline.evaluation_windows(events, ends)


def _take_away(
    nanoseconds: list[int], times: list[int], ends: list[int], first: int, last: int
) -> None:
    """An evaluation may lie across the end of a step."""
    for step in range(bisect_right(ends, first), bisect_left(ends, last) + 1):
        if step < len(ends):
            begin = max(first, ends[step - 1] if step else 0)
            nanoseconds[step] -= times[min(last, ends[step])] - times[begin]
