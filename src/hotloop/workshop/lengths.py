"""How long a trial goes on."""

from __future__ import annotations

from hotloop.trial.spec import Exam, StopRule

SECONDS = 3.0
"""Of measured steps: much less than it takes to start a process would not be worth starting it."""
MOST_SECONDS = 40.0
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
