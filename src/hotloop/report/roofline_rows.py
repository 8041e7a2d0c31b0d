"""The job against the machine's roof: how fast it computes for how much it moves, as plain rows."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.report.plan_words import NOTHING
from hotloop.report.search_figures import search_figures
from hotloop.report.sides import UNDER_THE_PLAN, sides
from hotloop.study import Study

NOT_COUNTED = (
    "What a step computes and moves was not counted, so the job has no place on a roofline."
)
NO_ROOF = "What this machine can do at most was not measured: hotloop doctor does that, once."


@dataclass(frozen=True)
class Ceiling:
    precision: str
    flops: float
    """A second."""


@dataclass(frozen=True)
class Place:
    label: str
    intensity: float
    """FLOPs for every byte."""
    flops: float
    """A second."""


@dataclass(frozen=True)
class Roofline:
    device: str
    bandwidth: float
    """Bytes a second."""
    ceilings: tuple[Ceiling, ...]
    """The lowest first."""
    places: tuple[Place, ...]
    lower_bound: bool
    """Some operators have no formula: the job computes at least this much."""
    measured_on: str
    disturbed: bool


def rows(study: Study) -> Roofline | str:
    """A sentence where there is nothing to draw."""
    found = sides(study)
    measurement = found[0].trial.measurement if found else None
    numbers = study.diagnosis.numbers if study.diagnosis else None
    if measurement is None or numbers is None or not numbers.flops_step or not numbers.intensity:
        return NOT_COUNTED
    on_gpu, roof = measurement.software.device != "cpu", study.roof
    rates = (roof.matrix_flops if on_gpu else roof.cpu_matrix_flops) if roof else {}
    bandwidth = (roof.memory_bandwidth if on_gpu else roof.cpu_memory_bandwidth) if roof else None
    if roof is None or not rates or not bandwidth:
        return NO_ROOF
    ordered = sorted(rates.items(), key=lambda item: item[1])
    return Roofline(
        device=measurement.software.device if on_gpu else study.machine.cpu,
        bandwidth=bandwidth,
        ceilings=tuple(Ceiling(*one) for one in ordered if one[1] > 0),
        places=_places(study, numbers.flops_step, numbers.intensity, numbers.flops_second),
        lower_bound=numbers.flops_are_lower_bound,
        measured_on=roof.measured_on,
        disturbed=roof.disturbed,
    )


def _places(
    study: Study, flops: float, intensity: float, a_second: float | None
) -> tuple[Place, ...]:
    """The plan computes the same in less time. What it moves was not counted again."""
    figures = search_figures(study) if study.found else None
    before = flops / figures.before.step_seconds if figures and figures.before else a_second
    places = [Place(NOTHING, intensity, before)] if before else []
    if figures and figures.after and figures.after.step_seconds:
        places.append(Place(UNDER_THE_PLAN, intensity, flops / figures.after.step_seconds))
    return tuple(places)
