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
    took = _took(events, [*drawn[: first + 1], *steady])  # all at once: see `picking`
    building, usual = took[:first], statistics.median(took[first + 1 :])
    return sum(building) + max(took[first] - usual, 0.0)


def _took(events: Events, ends: list[int]) -> list[float]:
    """A call lies between its begin and its end, and nothing of a worker's loading between them."""
    times = events.times_at([at for end in ends for at in (_begin(events, end), end)])
    return [float(times[at + 1] - times[at]) / 1e9 for at in range(0, len(times), 2)]


def _begin(events: Events, end: int) -> int:
    begin = end - 1
    while begin and (events.kind[begin], events.key[begin]) != (Kind.DATA_BEGIN, events.key[end]):
        begin -= 1
    return begin
