"""How far the job is, told to the parent a few times a second; and when enough has been seen."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Protocol

from hotloop.runtime.probes import compile_times
from hotloop.runtime.probes.clock import Numbers
from hotloop.seams import Seams
from hotloop.turns import Turns

EVERY_SECONDS = 0.2
WIDTH = 32
LEAST_STEPS = 10
"""Fewer do not show that a job is slow."""
PATIENCE = 5.0
"""Seconds of backward passes with neither an optimizer nor a model: to make its data a script may
differentiate, too, energies for forces say, before it trains. Later they are steps all the same."""


class Stop(Protocol):
    """What a trial has to see; `StopRule`, or who knows better."""

    @property
    def warm_up(self) -> int: ...

    @property
    def give_up_above(self) -> float | None: ...

    @property
    def asked_from(self) -> int:
        """Steps from which on it wants to be asked after each; before, now and then will do."""

    def satisfied(self, steps: int, seconds: float) -> bool:
        """Both are counted from the end of the first step."""


class ProgressProbe:
    def __init__(
        self,
        path: str,
        stop: Stop,
        deadline: float,
        optimizers: Numbers,
        enough: Callable[[], None],
        few: int,
    ) -> None:
        """`deadline`: on the monotonic clock. A `few` steps seen by then are better than none."""
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._stop = stop
        self._deadline = deadline
        self._few = few
        self._optimizers = optimizers
        self._known = optimizers.by_id
        self._enough = enough
        self._asked_from = stop.asked_from
        self._turns = Turns()
        self._count: set[int] = set()
        self.steps = 0
        """As `timeline` has them; without an optimizer, each backward pass."""
        self._optimizer_built = False
        self._modelled = False
        """Whether a model was called with gradients on."""
        self._first: float | None = None
        self._told = 0.0
        self._warm: tuple[int, float, float] | None = None
        """Where measuring began: steps made until then, when, and seconds compiled until then."""

    def attach(self, seams: Seams) -> None:
        """After every other probe: reaching the last step ends the process."""
        seams.optimizer.before.append(self._build)
        seams.step.after.append(self._stepped)
        self._counting_passes = [seams.backward.after, seams.grad.after]
        for listeners in self._counting_passes:
            listeners.append(self._passed)
        self._calls = seams.model.after
        self._modelled = not seams.model.is_used  # where nobody watches models, none is waited for
        if not self._modelled:
            self._calls.append(self._called)

    def _build(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Passes are no longer of interest, and hearing of them costs time."""
        if not self._optimizer_built:
            self._optimizer_built, self.steps, self._first = True, 0, None
        while self._counting_passes:
            self._counting_passes.pop().remove(self._passed)
        self._hear_no_calls()

    def _called(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        if self._first is not None:
            self._modelled = True
            self._hear_no_calls()

    def _hear_no_calls(self) -> None:
        if self._called in self._calls:
            self._calls.remove(self._called)

    def _stepped(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        """Calls nothing written in Python, as long as there is nothing to tell: see the clock."""
        number = self._known.get(id(args[0]))
        if number is None:
            number = self._optimizers.of(args[0])
        begins = self._turns.add(number)
        if not begins and number in self._count:
            self.steps += 1
        else:  # another may count from here on
            self._count = self._turns.count()
            self.steps = sum(map(self._turns.counts.__getitem__, self._count))
        now = time.monotonic()
        if now - self._told >= EVERY_SECONDS or self.steps >= self._asked_from:
            self._look(now)

    def _passed(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        self.steps += 1
        now = time.monotonic()
        if self._first is None:
            self._first = now
        if self._modelled or now - self._first > PATIENCE:
            self._look(now)

    def _look(self, now: float) -> None:
        if self._first is None:
            self._first = now
        steps = self.steps
        over = now > self._deadline and steps >= self._few
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
        compiled = compile_times.seconds() or 0.0  # which is told apart
        if self._warm is None:
            self._warm = steps, now, compiled
        measured = steps - self._warm[0]
        spent = now - self._warm[1] - (compiled - self._warm[2])
        return measured >= LEAST_STEPS and spent > limit * measured
