"""The clock of a trial stopped while code was compiled that then stays. Pure.

Code is compiled once for the sizes of a batch: at the first step, and again at an epoch's last
batch, which is shorter. A trial of a few dozen steps would have such a step count as much as all of
the others together, of which a training has thousands. It is told as what comes once instead.

What a plan's optimisations compile always stays. A script may also compile again and again, as long
as it runs: then that is what its steps take, and they keep it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate

from hotloop import timeline
from hotloop.measurement import Events, GpuTimes, Measurement, Spans

PARTS = 3
"""Of the steps after the first that compiled. A rate that lasts shows in each of them. What is
compiled for a short batch, or for the evaluation behind it, comes in one: when it is met first."""

Merged = list[tuple[int, int]]


def events_without(measurement: Measurement) -> Events:
    """As if compiling what stays took no time."""
    return _without(measurement.events, _that_stays(measurement))


def events_without_any(measurement: Measurement) -> Events:
    """As if compiling never took any time."""
    spans = _merged(measurement.compiling, measurement.script_compiling)
    return _without(measurement.events, spans)


def gpu_without(measurement: Measurement) -> GpuTimes:
    """Without the steps in which that was compiled: the GPU's own clock cannot be stopped."""
    gpu, spans = measurement.gpu, _that_stays(measurement)
    if not spans or not gpu.event:
        return gpu
    edges = timeline.step_ends(measurement.events)
    compiled = set(_steps(measurement, edges, (begin for begin, _ in spans)))
    kept = [
        (event, ms)
        for event, ms in zip(gpu.event, gpu.ms, strict=True)
        if bisect_left(edges, event) not in compiled
    ]
    return GpuTimes([event for event, _ in kept], [ms for _, ms in kept])


def all_seconds(measurement: Measurement) -> float:
    """Whenever it was, and whoever asked for it."""
    spans = _merged(measurement.compiling, measurement.script_compiling)
    return sum(end - begin for begin, end in spans) / 1e9


def seconds(measurement: Measurement) -> float:
    """While steps were measured, for what stays."""
    spans = _that_stays(measurement)
    times = measurement.events.time_ns if spans else []  # a long column, rarely asked for
    return _within(spans, times[0], times[-1]) if times else 0.0


def seconds_of_warm_up(measurement: Measurement, steps: int) -> float | None:
    """Part of what came once, the first `steps` included. None: nobody saw when it was compiled."""
    spans = _merged(measurement.compiling, measurement.script_compiling)
    if not spans:
        return None
    if not lasts(measurement):
        return seconds(measurement)
    edges = timeline.step_ends(measurement.events)[:steps]
    return _within(spans, *measurement.events.times_at([0, edges[-1]])) if edges else 0.0


def lasts(measurement: Measurement) -> bool:
    """Whether the script compiles again and again, from its first steps to its last."""
    begins = measurement.script_compiling.begin_ns
    if len(begins) <= PARTS:
        return False
    edges = timeline.step_ends(measurement.events)
    first, *others = sorted(set(_steps(measurement, edges, begins)))
    whole = len(edges) - 1 - first
    met = {(step - first - 1) * PARTS // whole for step in others if step < len(edges)}
    return len(met) == PARTS


def _steps(measurement: Measurement, edges: list[int], times_ns: Iterable[int]) -> list[int]:
    """Numbers of the steps in which these times lie. `edges`: where steps end."""
    ends = list(measurement.events.times_at(edges))
    return [bisect_right(ends, time_ns) for time_ns in times_ns]


def _that_stays(measurement: Measurement) -> Merged:
    if lasts(measurement):
        return _merged(measurement.compiling)
    return _merged(measurement.compiling, measurement.script_compiling)


def _without(events: Events, spans: Merged) -> Events:
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


def _within(spans: Merged, first: int, last: int) -> float:
    """Seconds of them between these two times."""
    within = [(max(begin, first), min(end, last)) for begin, end in spans]
    return sum(max(0, end - begin) for begin, end in within) / 1e9


def _merged(*found: Spans) -> Merged:
    """In order, those that overlap as one: compiling one function may start with another."""
    merged: Merged = []
    pairs = (pair for one in found for pair in zip(one.begin_ns, one.end_ns, strict=True))
    for begin, end in sorted(pairs):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged
