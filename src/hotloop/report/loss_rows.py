"""The losses of the job as it is and of the plan, laid over each other, as plain rows."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.plan import Plan
from hotloop.report.plan_words import key
from hotloop.report.sides import UNDER_THE_PLAN, sides
from hotloop.report.thinning import thinned
from hotloop.study import Study
from hotloop.trial.trial import Trial


@dataclass(frozen=True)
class Curve:
    name: str
    role: str
    """"reference", "plan" or "seed"."""
    points: tuple[tuple[int, float], ...]
    """Backward pass, from 1 on, and its loss. Those that were not finite are left out."""
    passes: int
    not_finite: int


@dataclass(frozen=True)
class Losses:
    curves: tuple[Curve, ...]
    free: int | None
    """Passes until the first that began from the reference's weights. None: none did."""


def rows(study: Study) -> Losses | None:
    """Of the trials that were examined; otherwise of the one that was timed."""
    examined = _examined(study)
    timed = [(side.label, "reference", side.trial) for side in sides(study)[:1]]
    free = _free(examined)
    curves = [_curve(*one, free) for one in examined or timed]
    shown = tuple(curve for curve in curves if len(curve.points) > 1)
    return Losses(shown, free) if shown else None


def _examined(study: Study) -> list[tuple[str, str, Trial]]:
    seeds = [trial for trial in study.trials if trial.purpose.startswith("reseeded")]
    reference = [trial for trial in study.trials if trial.purpose == "reference"]
    candidates = [trial for trial in study.trials if trial.purpose == "candidate"]
    plan = study.found.plan if study.found else None
    wanted = [trial for trial in candidates if _is(trial, plan)] or candidates
    shown = wanted[-1:]
    # A search that was resumed may have another, which this plan was not compared with.
    own = [one for one in reference if any(one.tied_to == trial.tied_to for trial in shown)]
    return [
        *(("another seed", "seed", trial) for trial in seeds),
        *(("as it is", "reference", trial) for trial in (own or reference)[-1:]),
        *((UNDER_THE_PLAN, "plan", trial) for trial in shown),
    ]


def _is(trial: Trial, plan: Plan | None) -> bool:
    return plan is not None and key(trial.plan) == key(plan)


def _free(examined: list[tuple[str, str, Trial]]) -> int | None:
    """From there on the curves are made to meet, and say nothing."""
    found = []
    for _, _, trial in examined:
        if trial.evidence is not None and trial.evidence.forced:
            steps = trial.evidence.structure.steps[: min(trial.evidence.forced)]
            found.append(sum(step.passes for step in steps))
    return min(found, default=None)


def _curve(name: str, role: str, trial: Trial, free: int | None) -> Curve:
    values = trial.measurement.losses.value[:free] if trial.measurement else []
    points = [(number, value) for number, value in enumerate(values, start=1) if value is not None]
    not_finite = trial.measurement.losses.not_finite if trial.measurement else 0
    return Curve(name, role, tuple(thinned(points)), len(values), not_finite)
