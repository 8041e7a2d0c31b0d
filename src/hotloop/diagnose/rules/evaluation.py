"""The run spends much of its time evaluating rather than training."""

from __future__ import annotations

from hotloop import timeline
from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.call_sites import distinct, in_the_loop
from hotloop.diagnose.sightings import seconds_by_line, sightings
from hotloop.diagnose.wording import percent, seconds
from hotloop.timeline import Phase


def evaluation(case: Case) -> Finding | None:
    # What comes before the first step happens once in a run, however long that is.
    steps = timeline.steps(case.measurement.events)[1:]
    pauses = [step.evaluation for step in steps if step.evaluation]
    spent = sum(pauses)
    share = spent / (spent + sum(step.seconds for step in steps)) if spent else 0.0
    if share < LEAST_SHARE:
        return None
    seen = sightings(case)
    called = in_the_loop(seen, lambda one: one.phase == Phase.EVALUATION)
    inside = seconds_by_line(seen, lambda one: one.phase == Phase.EVALUATION)
    return Finding(
        rule="evaluation",
        title=f"{percent(share)} of the run's time goes to evaluation",
        share=share,
        remedy="Evaluate less often, or on less data.",
        effort=Effort.SETTING,
        evidence=(
            f"it evaluates every {len(steps) / len(pauses):.3g} steps, for "
            f"{seconds(spent / len(pauses))}; a step takes {seconds(case.figures.step.mean)}",
            "the share is of the run that was timed, not of a step",
        ),
        places=distinct([*called[:2], *(line for line, _ in inside)]),
    )
