"""Over how many steps the training is examined."""

from __future__ import annotations

from hotloop.measurement import Measurement
from hotloop.trial.trial import State, Trial
from hotloop.workshop.lengths import whole_training

STEPS = 60
SECONDS = 60.0
"""A slow job is looked at for fewer steps, but not for fewer than LEAST."""
LEAST = 40


def steps_for(seconds_a_step: float, baseline: Trial) -> int:
    """STEPS, unless the job is slow, or ends before."""
    affordable = max(LEAST, min(STEPS, int(SECONDS / seconds_a_step)))
    whole = whole_training(baseline)
    return affordable if whole is None else min(affordable, whole)


def steps_made(trial: Trial) -> int:
    """By a job that came to its own end; 0 of any other."""
    if trial.state is not State.COMPLETE or not trial.ran_out or trial.evidence is None:
        return 0
    return len(trial.evidence.structure.steps)


def optimizer_steps(measurement: Measurement) -> int:
    """Of all optimizers, for each step of the job. A trial may end before all had their turn."""
    steps = [one.steps for one in measurement.inventory.optimizers if one.steps]
    return max(1, round(sum(min(1.0, (each + 1) / max(steps)) for each in steps)))
