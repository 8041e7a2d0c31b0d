"""How long a step takes otherwise than it is, where nobody can compute that: it is tried, in turns.

For some steps something is done otherwise, and for as many in between as the job does it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from time import perf_counter

BLOCK = 3
"""Steps of the same kind. The first of them is not counted: what is switched settles in it."""
FEWEST = 2
"""Counted, of each."""


class Turns:
    def __init__(self, switch: Callable[[bool], None]) -> None:
        """`switch`: told between two steps whether the next are to be done otherwise."""
        self._switch = switch
        self._seconds: dict[bool, list[float]] = {False: [], True: []}
        self._made = 0
        self._since = 0.0
        self._has_begun = False

    def begin(self) -> None:
        self._has_begun, self._made, self._since = True, 0, perf_counter()

    def stepped(self) -> None:
        if self._made % BLOCK:
            self._seconds[self.is_otherwise].append(perf_counter() - self._since)
        self._made += 1
        if not self._made % BLOCK:
            self._switch(self.is_otherwise)
        self._since = perf_counter()

    def end(self) -> None:
        if self._has_begun:
            self._has_begun = False
            self._switch(False)

    @property
    def seconds(self) -> tuple[float, float] | None:
        """Of a step otherwise, and as it is. None: too few were seen."""
        own, otherwise = self._seconds[False], self._seconds[True]
        if min(len(own), len(otherwise)) < FEWEST:
            return None
        return statistics.median(otherwise), statistics.median(own)

    @property
    def is_otherwise(self) -> bool:
        """The step that is under way."""
        return bool(self._made // BLOCK % 2)
