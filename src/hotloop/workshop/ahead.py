"""Examined trials that were run side by side, and wait to be asked for.

Each is kept as soon as it has ended: whoever stops the search then loses none of them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from hotloop.plan import Plan
from hotloop.trial.order import Launcher, Watcher
from hotloop.trial.side_by_side import Placed, launch_all
from hotloop.trial.trial import State, Trial
from hotloop.workshop.earlier import place_of


class Ahead:
    def __init__(self) -> None:
        self.trials: list[Trial] = []
        self._lost = 0.0
        """Seconds, on those that came to nothing: they are run again by themselves."""

    @property
    def cost(self) -> float:
        return self._lost + sum(trial.cost for trial in self.trials)

    def run(
        self,
        placed: Sequence[Placed],
        launcher: Launcher,
        watcher: Watcher,
        seconds: float = math.inf,
        save: Callable[[], None] = lambda: None,
    ) -> None:
        """For so many seconds at the most. What it has cost is known in the end."""
        before = list(self.trials)
        began, ended = time.monotonic(), list[Trial]()

        def keep(trial: Trial) -> None:
            ended.append(trial)
            if trial.state is State.COMPLETE:
                self.trials.append(trial)
                save()

        try:
            launch_all(placed, launcher, watcher, keep, began + seconds)
        finally:
            waited = time.monotonic() - began
            portion = min(1.0, waited / (sum(trial.seconds for trial in ended) or waited))
            shared = [replace(trial, portion=portion) for trial in ended]
            whole = [trial for trial in shared if trial.state is State.COMPLETE]
            self.trials = [*before, *whole]
            self._lost += sum(trial.cost for trial in shared if trial not in whole)
            save()

    def has(self, plan: Plan, purpose: str, tied_to: str | None = None) -> bool:
        return place_of(self.trials, plan, purpose, tied_to) is not None

    def take(self, plan: Plan, purpose: str, tied_to: str | None = None) -> Trial | None:
        place = place_of(self.trials, plan, purpose, tied_to)
        return None if place is None else self.trials.pop(place)

    def forget(self) -> None:
        self._lost = self.cost
        self.trials = []
