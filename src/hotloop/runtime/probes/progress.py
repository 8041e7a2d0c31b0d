"""How far the job is, told to the parent a few times a second; and when enough has been seen."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from hotloop.runtime.probes.clock import Numbers
from hotloop.seams import Seams

EVERY_SECONDS = 0.2
WIDTH = 32
LEAST_STEPS = 10
"""Fewer do not show that a job is slow."""


class Stop(Protocol):
    """What a trial has to see; `StopRule`, or who knows better."""

    @property
    def warm_up(self) -> int: ...

    @property
    def give_up_above(self) -> float | None: ...

    def satisfied(self, steps: int, seconds: float) -> bool:
        """Asked after every step of any optimizer. Both are counted from the end of the first."""


class ProgressProbe:
    def __init__(
        self,
        path: str,
        stop: Stop,
        deadline: float,
        optimizers: Numbers,
        enough: Callable[[], None],
    ) -> None:
        """`deadline`: on the monotonic clock. Two steps seen by then are better than none."""
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._stop = stop
        self._deadline = deadline
        self._optimizers = optimizers
        self._enough = enough
        self._counts: Counter[int] = Counter()
        self._optimizer_built = False
        self._passes = 0
        self._first: float | None = None
        self._told = 0.0
        self._warm: tuple[int, float] | None = None
        """Where measuring began: steps made until then, and when."""

    def attach(self, seams: Seams) -> None:
        """After every other probe: reaching the last step ends the process."""
        seams.optimizer.before.append(self._build)
        seams.step.after.append(self._stepped)
        self._counting_passes = [seams.backward.after, seams.grad.after]
        for listeners in self._counting_passes:
            listeners.append(self._passed)

    @property
    def steps(self) -> int:
        """The metronome is the optimizer that steps most; without any, each backward pass."""
        return max(self._counts.values(), default=0 if self._optimizer_built else self._passes)

    def _build(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Passes are no longer of interest, and hearing of them costs time."""
        self._optimizer_built = True
        while self._counting_passes:
            self._counting_passes.pop().remove(self._passed)

    def _stepped(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        self._counts[self._optimizers.of(args[0])] += 1
        self._look()

    def _passed(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        self._passes += 1
        self._look()

    def _look(self) -> None:
        now = time.monotonic()
        if self._first is None:
            self._first = now
        steps = self.steps
        over = now > self._deadline and steps >= 2
        if now - self._told >= EVERY_SECONDS:
            self._told = now
            os.pwrite(self._file, str(steps).encode().ljust(WIDTH), 0)
            over = over or self._is_slow(steps, now)
        if over or self._stop.satisfied(steps - 1, now - self._first):
            os.pwrite(self._file, str(steps).encode().ljust(WIDTH), 0)
            self._enough()

    def _is_slow(self, steps: int, now: float) -> bool:
        """Asked a few times a second: a fast job must not pay for it at every step."""
        limit = self._stop.give_up_above
        if limit is None or steps <= self._stop.warm_up:
            return False
        if self._warm is None:
            self._warm = steps, now
        measured = steps - self._warm[0]
        return measured >= LEAST_STEPS and now - self._warm[1] > limit * measured
