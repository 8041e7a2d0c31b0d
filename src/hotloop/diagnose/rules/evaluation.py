"""The run spends much of its time evaluating rather than training."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, median_low

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
    what = (
        "evaluation" if is_tested else "passes that train nothing (evaluation, sampling, playing)"
    )
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
    """Of the run that was timed; or how often by the other, if that one was too short to see two.

    A single one tells nothing: many scripts evaluate after the first step, and not again for long.
    Where a run is looked into one may take many times as long, so the usual one counts there, and
    that of the timed run if it is shorter.
    """
    timed = _in(case.measurement)
    if len(timed) > 1:
        return _Pauses(fmean(timed.values()), _every(timed))
    looked = _in(case.looked) if case.looked else {}
    if len(looked) < 2:
        return None
    return _Pauses(min([median_low(looked.values()), *timed.values()]), _every(looked))


def _every(found: dict[int, float]) -> float:
    return (max(found) - min(found)) / (len(found) - 1)


def _in(run: Measurement) -> dict[int, float]:
    """Seconds, by the number of the step."""
    # What comes before the first step happens once in a run, however long that is.
    steps = timeline.steps(run.events)[1:]
    return {number: step.evaluation for number, step in enumerate(steps) if step.evaluation}
