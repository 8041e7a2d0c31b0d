"""What it takes to begin a pass over the data, in trials that saw none begin among their steps.

Workers that come and go with every pass are started in the first one's warm-up. An epoch is the
steps of a pass and that. Where passes began among the steps, it is part of those already.
"""

from __future__ import annotations

import statistics

from hotloop import timeline
from hotloop.measurement import Events, Kind, LoaderSeen


def seconds(events: Events, loader: LoaderSeen, number: int, warm: int) -> float:
    """For a pass of the loader of that number; 0.0 where steps tell it, or nothing does."""
    if not loader.workers or loader.persistent:
        return 0.0
    ends = timeline.step_ends(events)
    drawn = [i for i in timeline.all_of(events, Kind.DATA_END) if events.key[i] == number]
    steady = [i for i in drawn if warm and i > ends[warm - 1]]
    first = next((at for at, i in enumerate(drawn) if events.n[i] >= 0), None)
    if first is None or not steady or any(events.n[i] < 0 for i in steady):
        return 0.0
    usual = statistics.median(_took(events, i) for i in steady)
    building = sum(_took(events, i) for i in drawn[:first])
    return building + max(_took(events, drawn[first]) - usual, 0.0)


def _took(events: Events, end: int) -> float:
    """A call lies between its begin and its end, and nothing of a worker's loading between them."""
    begin = end - 1
    while begin and (events.kind[begin], events.key[begin]) != (Kind.DATA_BEGIN, events.key[end]):
        begin -= 1
    return (events.time_ns[end] - events.time_ns[begin]) / 1e9
