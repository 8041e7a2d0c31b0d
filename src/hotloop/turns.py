"""Which optimizers' steps count as the steps of a job, of those that step in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

LONG = 2
"""Steps of a turn, on average. Whoever steps once between the others' steps belongs to those."""


class Turns:
    """Told of every step, it knows the metronome.

    That is who steps most often, and among equals the last in the cycle, so that a step of a GAN
    ends when both of its optimizers have stepped. Where several take turns for many steps each, as
    clients of a federation do, or members of an ensemble, each of their steps is one of the job.
    """

    def __init__(self, keys: Iterable[int] = ()) -> None:
        self.counts: Counter[int] = Counter()
        self._turns: Counter[int] = Counter()
        self._first: dict[int, int] = {}
        self._last: dict[int, int] = {}
        """When a turn began: the first one, and the latest."""
        self._now: int | None = None
        for key in keys:
            self.add(key)

    def add(self, key: int) -> bool:
        """Whether a turn begins with this step: only then it may be another who counts."""
        self.counts[key] += 1
        if key == self._now:
            return False
        self._now = key
        self._turns[key] += 1
        self._last[key] = when = self._turns.total()
        self._first.setdefault(key, when)
        return True

    def metronome(self) -> int | None:
        return max(self.counts, key=lambda key: (self.counts[key], self._first[key]), default=None)

    def count(self) -> set[int]:
        """Those whose steps count."""
        most = self.metronome()
        if most is None:
            return set()
        if not self._are_long(most):
            return {most}
        return {most, *(key for key in self.counts if self._takes_turns(key, most))}

    def _takes_turns(self, key: int, most: int) -> bool:
        """It may as well be a stage of its own, before the other's or after it."""
        earlier, later = sorted((key, most), key=self._first.__getitem__)
        alternate = self._first[later] < self._last[earlier]
        return alternate and self._are_long(key) and 2 * self.counts[key] >= self.counts[most]

    def _are_long(self, key: int) -> bool:
        return self.counts[key] >= LONG * self._turns[key]
