"""The rungs of the ladder that nobody has stood on yet: each is measured once, for the report."""

from __future__ import annotations

from contextlib import suppress

from hotloop.plan import Plan
from hotloop.search.climb import BudgetSpent, Climb
from hotloop.search.ladder import rungs
from hotloop.trial.trial import State
from hotloop.workshop.workshop import Workshop

PURPOSE = "rung"


def measure(plan: Plan, climb: Climb | None, workshop: Workshop) -> None:
    """As far as there is time: nothing depends on it."""
    trials = workshop.record.trials
    timed = [trial for trial in trials if trial.purpose in ("screen", "proof")]
    known = [trial.plan.levers for trial in timed if trial.state is State.COMPLETE]
    with suppress(BudgetSpent):
        for rung in rungs(plan, climb):
            if rung.levers not in known:
                workshop.measure(rung, PURPOSE)
