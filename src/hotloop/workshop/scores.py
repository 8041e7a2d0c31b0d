"""What a trial is worth, by what the search is about."""

from __future__ import annotations

from hotloop.figures import figures
from hotloop.search.climb import Score
from hotloop.trial.trial import State, Trial


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
