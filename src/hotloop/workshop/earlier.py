"""Trials of an earlier start of the same search: handed out where they would be run again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hotloop.plan import Plan
from hotloop.trial.trial import State, Trial


class Earlier:
    def __init__(self, trials: Iterable[Trial]) -> None:
        self.trials = [trial for trial in trials if trial.state is not State.INTERRUPTED]

    @property
    def cost(self) -> float:
        return sum(trial.cost for trial in self.trials)

    def has(self, plan: Plan, purpose: str, tied_to: str | None = None) -> bool:
        return place_of(self.trials, plan, purpose, tied_to) is not None

    def take(self, plan: Plan, purpose: str, tied_to: str | None = None) -> Trial | None:
        """In the order they were run, so that the third of three equal ones is again the third."""
        place = place_of(self.trials, plan, purpose, tied_to)
        return None if place is None else self.trials.pop(place)


def place_of(
    trials: Sequence[Trial], plan: Plan, purpose: str, tied_to: str | None = None
) -> int | None:
    """Of the first that answers this question."""
    for place, trial in enumerate(trials):
        if trial.is_for(plan, purpose, tied_to):
            return place
    return None
