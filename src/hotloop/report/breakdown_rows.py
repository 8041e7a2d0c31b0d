"""Where a step's time goes, before and after, as plain rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotloop.figures import Figures, PhaseShare, figures
from hotloop.report.profile_rows import NAMES
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
    return tuple(_breakdown(label, each.phases) for label, each in _figures(sides) if each.phases)


def gpu_rows(sides: Sequence[Side]) -> tuple[Breakdown, ...]:
    """Spans on the GPU's own clock: they overlap what the CPU does meanwhile."""
    return tuple(
        _breakdown(label, each.gpu_phases) for label, each in _figures(sides) if each.gpu_phases
    )


def _figures(sides: Sequence[Side]) -> list[tuple[str, Figures]]:
    measured = [(side.label, side.trial.measurement) for side in sides]
    found = [(label, figures(each)) for label, each in measured if each is not None]
    return [(label, each) for label, each in found if each is not None]


def _breakdown(label: str, phases: Sequence[PhaseShare]) -> Breakdown:
    parts = [Part(one.phase, NAMES[Phase(one.phase)], one.seconds, one.share) for one in phases]
    return Breakdown(label, sum(part.seconds for part in parts), tuple(parts))
