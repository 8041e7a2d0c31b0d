"""How long each step took, and nothing else: what `timeline` says of it, many times sooner.

A search asks this of every trial, a report of all of them at once. Where a step's time went is
asked of few trials, and costs a look at every single event. Here columns are looked through by
numpy, and of the long ones only what lies at the events that count is made into an array.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from typing import Any

from hotloop import evaluations, timeline
from hotloop.measurement import Events, Kind


class Run:
    """The steps of one trial, by the events that end them."""

    def __init__(self, events: Events) -> None:
        self._events = events
        # Looked through in a tenth of the time that a list takes; bytes() itself would take twice
        # as long as bytearray() to make.
        kinds = bytes(bytearray(events.kind))
        self.ends = timeline.step_ends(events, kinds)
        delivered = timeline.all_of(events, Kind.DATA_END, kinds)
        # A loader that had no more has delivered nothing.
        self._loaded = _chosen(delivered, _at(events.n, delivered) >= 0)
        self._seldom = timeline.read_seldom(events, self.ends, delivered)
        self._pauses = evaluations.windows(events, self.ends, self._seldom)

    def seconds(self) -> Any:
        """An array: every complete step, in order, warm-up included, without evaluation."""
        import numpy as np

        if not self.ends:
            return np.empty(0)
        nanoseconds = np.diff(np.array(self._events.times_at([0, *self.ends]), np.int64))
        for first, last in self._pauses:
            self._take_away(nanoseconds, first, last)
        return nanoseconds / 1e9

    def turns(self, warm: int) -> int:
        """Batches of the loader that steps are made on, for the steps after the first `warm`.

        Those that are read beside it have passes of their own. One that is read in its place, as
        that of another fold, counts for it.
        """
        of_steps: dict[int, Counter[int | None]] = {}
        for at in self._loaded_for(warm):
            counts = of_steps.setdefault(bisect_right(self.ends, at), Counter())
            counts[self._events.key[at]] += 1
        loader = self.loader()
        return sum([counts[loader] or max(counts.values()) for counts in of_steps.values()])

    def _loaded_for(self, warm: int) -> list[int]:
        """Batches for the steps after the first `warm`, those of evaluation left out."""
        if not self.ends:
            return []
        begin, end = self.ends[warm - 1] if warm else 0, self.ends[-1]
        loaded = self._loaded[bisect_left(self._loaded, begin) : bisect_left(self._loaded, end)]
        if self._seldom:
            loaded = [at for at in loaded if self._events.key[at] not in self._seldom]
        starts = [first for first, _ in self._pauses]
        pauses = [bisect_right(starts, at) - 1 for at in loaded]
        return [
            at
            for at, pause in zip(loaded, pauses, strict=True)
            if pause < 0 or at >= self._pauses[pause][1]
        ]

    def loader(self) -> int | None:
        """The one that most steps are made on."""
        return timeline.stepped_on(self._events, self._loaded, self.ends)

    def _take_away(self, nanoseconds: Any, first: int, last: int) -> None:
        """An evaluation may lie across the end of a step."""
        ends, times = self.ends, self._events.time_ns
        for step in range(bisect_right(ends, first), bisect_left(ends, last) + 1):
            if step < len(ends):
                begin = max(first, ends[step - 1] if step else 0)
                nanoseconds[step] -= times[min(last, ends[step])] - times[begin]


def _at(column: list[int], places: list[int]) -> Any:
    """What a column holds at these places, as an array."""
    import numpy as np

    return np.fromiter(map(column.__getitem__, places), np.int64, len(places))


def _chosen(places: list[int], which: Any) -> list[int]:
    """`places` itself where that is all of them."""
    return (
        places if which.all() else [at for at, is_one in zip(places, which, strict=True) if is_one]
    )
