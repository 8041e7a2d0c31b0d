"""The lines of the user's own whose operators do most of something."""

from __future__ import annotations

from collections.abc import Callable

from hotloop.diagnose.base import Case
from hotloop.diagnose.call_sites import distinct
from hotloop.diagnose.peaks import operators
from hotloop.inspection import Frame, OperatorLine

WORTH_A_LOOK = 0.1
"""Of what all lines do. One that does less is not where it happens."""


def heavy_lines(case: Case, does: Callable[[OperatorLine], float]) -> tuple[Frame, ...]:
    """The heaviest first. Empty where operators were not counted, or none does it."""
    counted = operators(case)
    lines = [line for line in counted.lines if line.phase != "optimizer"] if counted else []
    whole = sum(does(line) for line in lines)
    heavy = [line for line in lines if whole and does(line) >= WORTH_A_LOOK * whole]
    return distinct(line.place for line in sorted(heavy, key=does, reverse=True))


def by_flops(line: OperatorLine) -> float:
    return line.flops


def by_bytes(line: OperatorLine) -> float:
    return line.bytes


def by_copies(line: OperatorLine) -> float:
    return line.copied


def by_operators(line: OperatorLine) -> float:
    return line.operators + line.backward_operators
