"""How long a step takes with no more threads than there are cores, where a job has more.

They wait for each other, and for their turn: how much that costs cannot be computed, only tried. So
for some steps torch computes with fewer, and for as many in between with what the job asked for.
"""

from __future__ import annotations

import statistics
from time import perf_counter
from typing import Any

from hotloop.inspection import ThreadsTried
from hotloop.levers.threads import usable_cores

BLOCK = 3
"""Steps with the same number. The first of them is not counted: threads begin and end in it."""
FEWEST = 2
"""Counted, of each."""


class FewerThreadsProbe:
    def __init__(self, torch: Any) -> None:
        # The function itself: what watches the script's own calls is not to hear of ours.
        self._set, self._get = torch._C.set_num_threads, torch.get_num_threads
        self._cores = usable_cores()
        self._own = 0
        self._seconds: dict[int, list[float]] = {}
        self._made = 0
        self._since = 0.0

    @property
    def is_worth_it(self) -> bool:
        return bool(self._get() > self._cores)

    @property
    def tried(self) -> ThreadsTried | None:
        own, fewer = (self._seconds.get(number, []) for number in (self._own, self._cores))
        if min(len(own), len(fewer)) < FEWEST:
            return None
        return ThreadsTried(self._cores, statistics.median(fewer), statistics.median(own))

    def begin(self) -> None:
        self._own = self._get()
        self._seconds = {self._own: [], self._cores: []}
        self._made, self._since = 0, perf_counter()

    def stepped(self) -> None:
        if self._made % BLOCK:
            self._seconds[self._number].append(perf_counter() - self._since)
        self._made += 1
        if not self._made % BLOCK:
            self._set(self._number)
        self._since = perf_counter()

    def end(self) -> None:
        if self._own:
            self._set(self._own)

    @property
    def _number(self) -> int:
        """Of the step that is under way."""
        return self._cores if self._made // BLOCK % 2 else self._own
