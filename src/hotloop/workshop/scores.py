"""What a trial is worth, by what the search is about."""

from __future__ import annotations

from collections.abc import Callable

from hotloop.figures import step_times
from hotloop.search.climb import BudgetSpent
from hotloop.search.score import Score
from hotloop.trial.trial import State, Trial

DISTURBED = 1.25
"""Times what it should be at the most: processes of one job commonly differ by less."""


def score_of(trial: Trial, objective: str, steps: int | None = None) -> Score:
    """`steps`: of the whole training, where it is so short that its end was seen."""
    if trial.state is not State.COMPLETE or trial.measurement is None:
        applied = trial.state is not State.NOT_APPLIED
        idle = () if applied else tuple(one.lever for one in trial.receipts if not one.applied)
        starved = trial.state is State.OUT_OF_MEMORY
        return Score(None, trial.reason, applied, idle, starved)
    if objective == "memory":
        peak = trial.measurement.memory.peak
        return Score(float(peak)) if peak else Score(None, "Its memory is not known.")
    found = step_times(trial.measurement)
    if found is None:
        return Score(None, "Too few steps were seen.")
    once = sum(receipt.once_seconds for receipt in trial.receipts)
    crowd = trial.company.crowd if trial.company else 0.0
    return Score(found.step.mean / trial.own_batches, once=once, steps=steps, crowd=crowd)


def undisturbed(
    baseline: Trial, looked: Trial | None, objective: str, again: Callable[[], Trial]
) -> Trial:
    """The trial of the job as it is that everything is compared with, and diagnosed by.

    A trial that is looked into takes longer: where that one was clearly faster, something else has
    slowed the first one down, and it is run again.
    """
    first = score_of(baseline, objective).value
    second = score_of(looked, objective).value if looked else None
    if first is None or second is None or first <= second * DISTURBED:
        return baseline
    try:
        repeated = again()
    except BudgetSpent:
        return baseline
    value = score_of(repeated, objective).value
    return baseline if value is None or value >= first else repeated
