"""How long a step takes while workers load beside it: a small model of a machine, played through.

Workers take batches in turn, a few ahead of the training, and from one pass over the data to the
next nobody loads ahead. All want cores; where those are short, everybody gets a part of one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, auto

AHEAD = 2
"""Batches that torch lets each worker have under way, unless it is told otherwise."""
LONG = 16
"""Batches of each worker. After so many the beginning of a pass tells nothing of what follows."""
WAIT_FOR_EACH_OTHER = 2
"""The power to which threads feel that cores are short. Each computes for its share of the time,
but goes on only while the others compute too: two that get half a core each, and not at the same
times, need four times as long. Seen with two of them: between three and four times."""
ALMOST = 1e-12


class _Doing(Enum):
    WAITING = auto()
    RECEIVING = auto()
    COMPUTING = auto()


@dataclass(frozen=True)
class Pipeline:
    own: float
    """Seconds of the training's own work for a batch, with all its threads and nobody beside it."""
    threads: int
    handed: float
    """Seconds of the training's first thread, to receive a batch that a worker has made."""
    work: float
    """Seconds of a worker, to make a batch."""
    on_core: float
    """The share of these that keeps a core busy."""
    workers: int
    cores: int
    batches_a_pass: int | None = None
    """None: passes are long, or have no end."""
    ahead: int = AHEAD

    def seconds(self) -> float:
        """For a batch, from one to the next, on average over a pass."""
        rounds = LONG * self.workers
        if self.batches_a_pass is None or self.batches_a_pass >= 2 * rounds:
            ends = _Play(self, None).ends(2 * rounds)
            return (ends[-1] - ends[rounds - 1]) / rounds
        batches = max(self.batches_a_pass, 1)
        return _Play(self, batches).ends(batches)[-1] / batches


class _Play:
    """One pass. Between two events everybody goes on at the same pace."""

    def __init__(self, of: Pipeline, batches: int | None) -> None:
        self._of = of
        self._batches = math.inf if batches is None else batches
        self._doing = _Doing.WAITING
        self._left = 0.0
        """Seconds of what the training is doing, if it had all the cores it wants."""
        self._taken = 0
        self._begun = [0] * of.workers
        """How many batches each worker has begun, …"""
        self._loading = [0.0] * of.workers
        """… and what is left of the last."""
        self._made: set[int] = set()

    def ends(self, batches: int) -> list[float]:
        """When the step on each of the first ones ended."""
        now = 0.0
        found: list[float] = []
        while len(found) < batches:
            self._assign()
            if self._doing is _Doing.WAITING and self._taken in self._made:
                self._doing, self._left = _Doing.RECEIVING, self._of.handed
            training, worker = self._paces()
            span = self._until_next(training, worker)
            now += span
            self._loading = [max(left - span * worker, 0.0) for left in self._loading]
            if self._doing is not _Doing.WAITING:
                self._left -= span * training
            self._note_made()
            if self._doing is not _Doing.WAITING and self._left <= ALMOST and self._finish():
                found.append(now)
        return found

    def _assign(self) -> None:
        """Whoever is free begins its next batch, if the training has taken enough by then."""
        for number in range(self._of.workers):
            batch = number + self._begun[number] * self._of.workers
            asked_for = min(self._taken + self._of.ahead * self._of.workers, self._batches)
            if self._loading[number] <= ALMOST and batch < asked_for:
                self._loading[number] = max(self._of.work, 2 * ALMOST)
                self._begun[number] += 1

    def _note_made(self) -> None:
        for number, left in enumerate(self._loading):
            if left <= ALMOST and self._begun[number]:
                self._made.add(number + (self._begun[number] - 1) * self._of.workers)

    def _finish(self) -> bool:
        """Goes on to what comes next; whether a step has ended."""
        if self._doing is _Doing.RECEIVING:
            self._taken += 1
            self._doing, self._left = _Doing.COMPUTING, self._of.own
            return False
        self._doing = _Doing.WAITING
        return True

    def _paces(self) -> tuple[float, float]:
        """Of the training and of a worker, where 1 is with all the cores that it wants."""
        threads = {
            _Doing.WAITING: 0,
            _Doing.RECEIVING: 1,
            _Doing.COMPUTING: self._of.threads,
        }[self._doing]
        loading = sum(left > ALMOST for left in self._loading)
        crowd = max(1.0, (threads + loading * self._of.on_core) / self._of.cores)
        of_a_worker = 1 / (1 - self._of.on_core + self._of.on_core * crowd)
        return 1 / crowd ** (WAIT_FOR_EACH_OTHER if threads > 1 else 1), of_a_worker

    def _until_next(self, training: float, worker: float) -> float:
        ends = [left / worker for left in self._loading if left > ALMOST]
        if self._doing is not _Doing.WAITING:
            ends.append(max(self._left, 0.0) / training)
        return min(ends)
