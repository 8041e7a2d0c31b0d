"""How long a trial goes on."""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.plan import Plan
from hotloop.timeline import step_ends
from hotloop.trial.spec import Exam, StopRule
from hotloop.trial.trial import Trial
from hotloop.workshop.outlook import once_more

SECONDS = 3.0
"""Of measured steps: much less than it takes to start a process would not be worth starting it."""
MOST_SECONDS = 40.0
MORE = 1.25
"""Times the seconds that did not do for a trial: with so many it is worth another look."""
FEWEST, LEAST, MOST = 8, 24, 500
"""Steps: of a slow job, of any other, and of a very quick one."""


def until_it_ends(exam: Exam) -> StopRule:
    """By itself. This is for a job in which it sees no steps."""
    return StopRule(warm_up=0, steps=3 * exam.steps)


def first_look(steps: int | None) -> StopRule:
    return StopRule(steps=steps, min_steps=LEAST, min_seconds=SECONDS, max_seconds=MOST_SECONDS)


def steps_for(seconds_a_step: float) -> int:
    """Enough to be steady, and not more than is worth waiting for."""
    wanted = min(max(round(SECONDS / seconds_a_step), LEAST), MOST)
    return max(min(wanted, int(MOST_SECONDS / seconds_a_step)), FEWEST)


def whole_training(baseline: Trial) -> int | None:
    """Its steps, where it came to its own end before enough had been seen."""
    if not baseline.ran_out or baseline.measurement is None:
        return None
    return len(step_ends(baseline.measurement.events))


def least_seconds(before: Sequence[Trial], plan: Plan, purpose: str) -> float:
    """What such a trial takes: with less time than that it need not begin. A first one may."""
    alike = [trial.seconds for trial in before if trial.is_for(plan, purpose)]
    return min(alike or [once_more(trial) for trial in before[:1]], default=0.0)
