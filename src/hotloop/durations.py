"""How long each step took, and nothing else: what `timeline` says of it, many times sooner.

A search asks this of every trial, a report of all of them at once. Where a step's time went is
asked of few trials, and costs a look at every single event.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import sub

from hotloop import timeline
from hotloop.measurement import Events, Kind


class Run:
    """The steps of one trial, by the events that end them."""

    def __init__(self, events: Events) -> None:
        self._events = events
        kinds = bytes(events.kind)  # looked through in a tenth of the time that a list takes
        self.ends = timeline.step_ends(events, kinds)
        self._delivered = timeline.all_of(events, Kind.DATA_END, kinds)
        evaluates = int(Kind.NO_GRAD_BEGIN) in kinds
        self._pauses = timeline.evaluation_windows(events, self.ends) if evaluates else []

    def seconds(self) -> list[float]:
        """Every complete step, in order, warm-up included, without evaluation."""
        if not self.ends:
            return []
        times = self._events.time_ns
        at = [times[0], *map(times.__getitem__, self.ends)]
        nanoseconds = list(map(sub, at[1:], at))
        for first, last in self._pauses:
            self._take_away(nanoseconds, first, last)
        return [length / 1e9 for length in nanoseconds]

    def batches(self, warm: int) -> int:
        """That were loaded for the steps after the first `warm`, those of evaluation left out."""
        if not self.ends:
            return 0
        begin, end = self.ends[warm - 1] if warm else 0, self.ends[-1]
        loaded = [at for at in self._delivered if begin <= at < end and self._events.n[at] >= 0]
        if not self._pauses:
            return len(loaded)
        starts = [first for first, _ in self._pauses]
        pauses = [bisect_right(starts, at) - 1 for at in loaded]
        return sum(
            pause < 0 or at >= self._pauses[pause][1]
            for pause, at in zip(pauses, loaded, strict=True)
        )

    def loader(self) -> int | None:
        """The one that most batches came from."""
        return timeline.loader_of(self._events, self._delivered)

    def _take_away(self, nanoseconds: list[int], first: int, last: int) -> None:
        """An evaluation may lie across the end of a step."""
        ends, times = self.ends, self._events.time_ns
        for step in range(bisect_right(ends, first), bisect_left(ends, last) + 1):
            if step < len(ends):
                begin = max(first, ends[step - 1] if step else 0)
                nanoseconds[step] -= times[min(last, ends[step])] - times[begin]
