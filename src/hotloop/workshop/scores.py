"""What a trial is worth, by what the search is about."""

from __future__ import annotations

from hotloop.figures import figures
from hotloop.plan import Plan
from hotloop.search.climb import Bench, BudgetSpent, Score
from hotloop.trial.trial import State, Trial

DISTURBED = 1.25
"""Times what it should be at the most: processes of one job commonly differ by less."""


def score_of(trial: Trial, objective: str) -> Score:
    if trial.state is not State.COMPLETE or trial.measurement is None:
        applied = trial.state is not State.NOT_APPLIED
        idle = () if applied else tuple(one.lever for one in trial.receipts if not one.applied)
        starved = trial.state is State.OUT_OF_MEMORY
        return Score(None, trial.reason, applied, idle, starved)
    if objective == "memory":
        memory = trial.measurement.memory
        peak = memory.device_peak_allocated or memory.host_peak
        return Score(float(peak)) if peak else Score(None, "Its memory is not known.")
    found = figures(trial.measurement)
    if found is None:
        return Score(None, "Too few steps were seen.")
    return Score(found.step.mean / trial.own_batches)


def start_of(
    baseline: Trial, looked: Trial | None, objective: str, plan: Plan, bench: Bench
) -> float | None:
    """What the job as it is came to, under the plan that it may need.

    Everything is compared with that. A trial that is looked into takes longer: where that one was
    clearly faster, something else has slowed the first one down, and it is run again.
    """
    first = score_of(baseline, objective).value
    second = score_of(looked, objective).value if looked else None
    if first is None or second is None or first <= second * DISTURBED:
        return first
    try:
        return min(bench.measure(plan, "baseline").value or first, first)
    except BudgetSpent:
        return first
