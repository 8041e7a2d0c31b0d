"""The run spends much of its time evaluating rather than training."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop import timeline
from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.call_sites import dearest_lines, distinct, in_the_loop
from hotloop.diagnose.sightings import sightings
from hotloop.diagnose.wording import percent, seconds, times
from hotloop.measurement import Measurement
from hotloop.timeline import Phase


@dataclass(frozen=True)
class _Pauses:
    seconds: float
    """One of them."""
    every: float
    """Steps from one to the next."""


def evaluation(case: Case) -> Finding | None:
    pauses = _pauses(case)
    if pauses is None:
        return None
    share = pauses.seconds / (pauses.seconds + pauses.every * case.figures.step.mean)
    if share < LEAST_SHARE:
        return None
    seen = sightings(case)
    called = in_the_loop(seen, lambda one: one.phase == Phase.EVALUATION)
    inside = dearest_lines(seen, lambda one: one.phase == Phase.EVALUATION)
    # Reinforcement learning plays without gradients too, and a language model is sampled from.
    is_tested = bool(case.measurement.inventory.loaders)
    what = "evaluation" if is_tested else "passes without gradients (evaluation, sampling, playing)"
    other = "" if is_tested else " What samples or plays is quicker with more at a time."
    return Finding(
        rule="evaluation",
        title=f"{percent(share)} of the run's time goes to {what}",
        share=share,
        remedy=f"Evaluate less often, or on less data.{other}",
        effort=Effort.SETTING,
        evidence=(
            f"every {times(pauses.every, 'step')}, for {seconds(pauses.seconds)}; "
            f"a step takes {seconds(case.figures.step.mean)}",
            "the share is of the whole run, not of a step",
        ),
        places=distinct([*called[:2], *inside]),
    )


def _pauses(case: Case) -> _Pauses | None:
    """Of the run that was timed; or of the other, if that one was too short to see two of them.

    A single one tells nothing: many scripts evaluate after the first step, and not again for long.
    """
    runs = [case.measurement, *([case.looked] if case.looked else [])]
    return next((found for run in runs if (found := _in(run)) is not None), None)


def _in(run: Measurement) -> _Pauses | None:
    # What comes before the first step happens once in a run, however long that is.
    steps = timeline.steps(run.events)[1:]
    at = [number for number, step in enumerate(steps) if step.evaluation]
    if len(at) < 2:
        return None
    spent = sum(steps[number].evaluation for number in at)
    return _Pauses(spent / len(at), (at[-1] - at[0]) / (len(at) - 1))
