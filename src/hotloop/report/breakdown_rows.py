"""Where a step's time goes, before and after, as plain rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotloop.figures import Figures, PhaseShare, figures
from hotloop.report.phase_names import phase_names
from hotloop.report.sides import Side
from hotloop.timeline import Phase


@dataclass(frozen=True)
class Part:
    phase: str
    name: str
    seconds: float
    """A step."""
    share: float


@dataclass(frozen=True)
class Breakdown:
    label: str
    seconds: float
    parts: tuple[Part, ...]


def rows(sides: Sequence[Side]) -> tuple[Breakdown, ...]:
    """On the CPU's clock: the parts add up to the step."""
    found = _figures(sides)
    return tuple(_breakdown(side, each.phases) for side, each in found if each.phases)


def gpu_rows(sides: Sequence[Side]) -> tuple[Breakdown, ...]:
    """On the GPU's own clock, of which the CPU may be ahead."""
    found = _figures(sides)
    return tuple(_breakdown(side, each.gpu_phases) for side, each in found if each.gpu_phases)


def _figures(sides: Sequence[Side]) -> list[tuple[Side, Figures]]:
    measured = [(side, side.trial.measurement) for side in sides]
    found = [(side, figures(each)) for side, each in measured if each is not None]
    return [(side, each) for side, each in found if each is not None]


def _breakdown(side: Side, phases: Sequence[PhaseShare]) -> Breakdown:
    """For as many samples as the job's own step has."""
    batches, names = side.trial.own_batches, phase_names(side.trial.measurement)
    parts = [
        Part(one.phase, names[Phase(one.phase)], one.seconds / batches, one.share) for one in phases
    ]
    return Breakdown(side.label, sum(part.seconds for part in parts), tuple(parts))
