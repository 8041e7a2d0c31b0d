"""Cells of tables, as people read them. What was not measured is a dash and never a number."""

from __future__ import annotations

from hotloop import units
from hotloop.experiments.base import FAILED, Gain, Measured


def seconds(value: float | None) -> str:
    return FAILED if value is None else units.seconds(value)


def size(value: float | None) -> str:
    return FAILED if value is None else units.size(value)


def rate(value: float | None) -> str:
    return FAILED if value is None else units.rate(value)


def number(value: float | None, digits: int = 4) -> str:
    return FAILED if value is None else f"{value:.{digits}g}"


def percent(value: float | None) -> str:
    return FAILED if value is None else f"{value:.0%}"


def ratio(found: Gain | None) -> str:
    """With the least and the largest of the rounds, where there were several."""
    if found is None:
        return FAILED
    spread = f" [{found.low:.2f}, {found.high:.2f}]" if found.low < found.high else ""
    return f"{found.ratio:.2f}×{spread}"


def failures(measured: list[Measured]) -> tuple[str, ...]:
    """A sentence for every case that did not come to its end."""
    return tuple(f"{one.case.label}: {one.reason}" for one in measured if not one.ran)
