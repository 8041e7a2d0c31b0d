"""The clock of a trial stopped while a plan's own optimisations compiled. Pure.

Code is compiled once for the sizes of a batch: at the first step, and again at an epoch's last
batch, which is shorter. A trial of a few dozen steps would have such a step count as much as all of
the others together, of which a training has thousands. It is told as what comes once instead.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from itertools import accumulate

from hotloop.measurement import Events, Measurement


def events_without(measurement: Measurement) -> Events:
    """As if compiling took no time."""
    spans = _merged(measurement)
    events = measurement.events
    if not spans:
        return events
    begins = [begin for begin, _ in spans]
    before = [0, *accumulate(end - begin for begin, end in spans)]

    def without(time_ns: int) -> int:
        passed = bisect_right(begins, time_ns)
        if not passed:
            return time_ns
        still = max(0, spans[passed - 1][1] - time_ns)  # not over yet
        return time_ns - before[passed] + still

    return replace(events, time_ns=[without(time_ns) for time_ns in events.time_ns])


def seconds(measurement: Measurement) -> float:
    """While steps were measured."""
    spans = _merged(measurement)
    times = measurement.events.time_ns if spans else []  # a long column, rarely asked for
    if not times:
        return 0.0
    within = [(max(begin, times[0]), min(end, times[-1])) for begin, end in spans]
    return sum(max(0, end - begin) for begin, end in within) / 1e9


def _merged(measurement: Measurement) -> list[tuple[int, int]]:
    """In order, those that overlap as one: compiling one function may start with another."""
    found = measurement.compiling
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(zip(found.begin_ns, found.end_ns, strict=True)):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged
