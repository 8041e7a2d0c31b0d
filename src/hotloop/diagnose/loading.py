"""What loading a batch takes, who does it, and how long a step would be if it took less."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from hotloop.diagnose.base import Case
from hotloop.diagnose.pipeline import AHEAD, Pipeline
from hotloop.diagnose.sightings import at_training
from hotloop.diagnose.steady import steady_steps
from hotloop.inspection import LoaderLook

FAR_OFF = 2.0
"""Times. Processes do not differ by that much: something else is going on, and nothing is known."""

STARTING = 0.02
"""Seconds of a pass, for two workers that are started and ended with it: no machine takes less, and
a busy one ten times as long."""


@dataclass(frozen=True)
class Loading:
    step: float
    """Seconds of a step in the timed trial, and of those the training waits for its data."""
    wait: float
    workers: int
    cores: int
    threads: int
    """That compute on the CPU while no batch is awaited. With a GPU: the one that queues work."""
    items: float = 0.0
    """Seconds of a loading process, for the data of one step: drawing items, …"""
    items_cpu: float = 0.0
    """… of these on a core, …"""
    collate: float = 0.0
    """… and putting a batch together. All 0: not looked into."""
    alone: float | None = None
    """Seconds that the step's own work takes while no worker runs. None: that was not tried."""
    handed: float = 0.0
    """Seconds for receiving what workers have made for one step, however quickly they make it."""
    batches: float = 1.0
    """Of the loader, to a step, …"""
    batches_a_pass: int | None = None
    """… and to a pass over the data. None: it has no end, or none is known."""
    ahead: int = AHEAD
    """Batches that each worker may have under way."""

    @property
    def work(self) -> float:
        """Seconds of a loading process for one step. Without a worker the wait itself is that."""
        return self.items + self.collate if self.workers else self.wait

    @property
    def on_core(self) -> float:
        """Of that work, the share that keeps a core busy."""
        whole = self.items + self.collate
        return (self.items_cpu + self.collate) / whole if whole else 1.0

    def saved_without(self, part: float) -> float:
        """The share of a step that is won when this part of the loading work is gone."""
        if not self.workers:
            return part * self.wait / self.step
        return self._won(self._overlapped(self.work * (1 - part), self.workers) * self._pace())

    def saved_with(self, workers: int) -> float:
        """The share of a step that is won when so many workers load."""
        return self._won(self._overlapped(self.work, workers) * self._pace())

    @property
    def starting(self) -> float:
        """The share of a step that two workers would cost which come and go with every pass."""
        passes = self.batches / self.batches_a_pass if self.batches_a_pass else 0.0
        return STARTING * passes / self.step if self.step else 0.0

    def reckoned_with(self, workers: int) -> float:
        """What so many workers save by the reckoning alone: that a step took longer than reckoned,
        more of them need not change."""
        now = self._overlapped(self.work, self.workers) if self.workers and self.work else 0.0
        return max(0.0, 1 - self._overlapped(self.work, workers) / now) if now else 1.0

    def saved_by_keeping_workers(self, starting: float) -> float:
        """The same when workers are not started anew for every pass.

        `starting`: seconds of a step that it waits for that. What goes on beside it is slower, too.
        But that the rest of a step took longer than was reckoned may as well be the difference of
        two processes: half of it is believed here, too, and none where that is far off.
        """
        rest = max(self.step - starting, 0.0)
        differs = self._differs(rest)
        return self._won(rest / math.sqrt(differs) if differs else rest)

    @property
    def is_far_off(self) -> bool:
        """The timed run and the one that was looked into are no runs of one kind."""
        is_known = self.alone is not None and self.work > 0
        return bool(self.workers) and is_known and self._differs(self.step) is None

    def _overlapped(self, work: float, workers: int) -> float:
        """Seconds of a step beside which other processes load."""
        each = 1 / self.batches if self.batches else 1.0
        played = Pipeline(
            own=self._alone() * each,
            threads=self.threads,
            handed=self.handed * each,
            work=work * each,
            on_core=self.on_core,
            workers=workers,
            cores=self.cores,
            batches_a_pass=self.batches_a_pass,
            ahead=self.ahead,
        )
        return played.seconds() / each

    def _pace(self) -> float:
        """How much slower the timed run was than the one that was looked into.

        They are two processes, and what they take differs from one to the next. A step as it is,
        reckoned from what was seen in the other, says by how much; or it says how far off the
        reckoning is. Which of the two nobody knows, so half of it is believed.
        """
        differs = self._differs(self.step)
        return math.sqrt(differs) if differs else 1.0

    def _differs(self, step: float) -> float | None:
        """How much longer so long a step is than reckoned. None: nothing is known of that."""
        if not self.workers or self.alone is None or not self.items + self.collate:
            return None
        differs = step / self._overlapped(self.work, self.workers)
        return differs if 1 / FAR_OFF < differs < FAR_OFF else None

    def _alone(self) -> float:
        """The step's own work, if no worker took cores from it."""
        if self.alone is not None:
            return min(self.alone, self.step - self.wait)
        wanted = self.threads + self.workers * self.on_core
        crowded = max(1.0, wanted / self.cores) if self.workers else 1.0
        return (self.step - self.wait) / crowded

    def _won(self, after: float) -> float:
        return max(0.0, 1 - after / self.step) if self.step else 0.0


def loading(case: Case) -> Loading:
    steps = steady_steps(case)
    batches = sum(step.batches for step in steps) / len(steps) if steps else 0.0
    looks = at_training(case)
    alone = case.inspection.alone_seconds if case.inspection else []
    handed = case.inspection.handed_seconds if case.inspection else []
    threads = 1 if case.on_gpu else min(max(case.measurement.inventory.threads, 1), case.cores)
    return Loading(
        step=case.figures.step.mean,
        wait=case.share("data") * case.figures.step.mean,
        workers=case.loader.workers if case.loader else 0,
        cores=case.cores,
        threads=threads,
        items=batches * _a_batch(looks, [s for look in looks for s in given_a_core(look)]),
        items_cpu=batches * _a_batch(looks, [s for look in looks for s in computed(look)]),
        collate=batches * _mean([s for look in looks for s in _put_together(look)]),
        alone=statistics.median(alone) if alone else None,
        handed=batches * statistics.median(handed) if handed else 0.0,
        batches=batches or 1.0,
        batches_a_pass=case.loader.batches if case.loader else None,
        ahead=(case.loader.prefetch if case.loader else None) or AHEAD,
    )


def given_a_core(look: LoaderLook) -> list[float]:
    """What each item takes without the time that others had the core: any may be met by that."""
    return _without_queues(look.item_seconds, look.item_queued_seconds)


def computed(look: LoaderLook) -> list[float]:
    """What each item keeps a core busy for."""
    return _without_queues(look.item_cpu_seconds, look.item_queued_seconds)


def _put_together(look: LoaderLook) -> list[float]:
    return _without_queues(look.collate_seconds, look.collate_queued_seconds)


def _without_queues(seconds: list[float], queued: list[float]) -> list[float]:
    if len(queued) != len(seconds):
        return seconds
    return [max(took - lost, 0.0) for took, lost in zip(seconds, queued, strict=True)]


def _a_batch(looks: list[LoaderLook], spent: list[float]) -> float:
    """An entry is an item, or a whole batch where the dataset hands out batches."""
    sizes = [n for look in looks for n in look.batch_items]
    return _mean(spent) * (1 if len(spent) == len(sizes) else _mean(sizes))


def _mean(values: list[float] | list[int]) -> float:
    return sum(values) / len(values) if values else 0.0
