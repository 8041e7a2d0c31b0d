"""Python loops over tensors: lines of the user's own that queue very many small operators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from hotloop.diagnose.base import Case
from hotloop.diagnose.sightings import Sighting
from hotloop.diagnose.steady import steady_spans, steady_steps
from hotloop.inspection import OperatorLine
from hotloop.measurement import Kind

MANY = 500
"""Operators that a line queues in a pass, for one module. A line of a layer that stands for fifty
layers queues as many, and is no loop that anybody could leave out."""
SMALL = 16_384
"""Elements. An operator on fewer takes about as long as one on a single number."""
REPEATED = 20
"""Times in a pass. The lines of one function that are make a loop together: that of a recurrent
cell, say, each line of which queues few."""


def loops(case: Case) -> list[OperatorLine]:
    """The busiest first."""
    operators = case.inspection.operators if case.inspection else None
    if operators is None or not operators.steps:
        return []
    # A line that runs once in each of many passes is no loop: the passes are.
    backward = len(steady_spans(case, Kind.BACKWARD_BEGIN))
    once = max(backward / max(len(steady_steps(case)), 1), 1.0)
    passes = operators.steps * once
    small = [
        line
        for line in operators.lines
        if line.phase != "optimizer" and line.median_elements <= SMALL
    ]
    of_functions: dict[tuple[str, str], int] = defaultdict(int)
    for line in small:
        of_functions[_function(line)] += _queued(line) * (line.repeats >= REPEATED * passes)
    found = [
        line
        for line in small
        if _queued(line) >= MANY * passes * line.modules
        or (line.repeats >= REPEATED * passes and of_functions[_function(line)] >= MANY * passes)
    ]
    return sorted(found, key=lambda line: -line.operators)


def _queued(line: OperatorLine) -> int:
    return line.operators - line.recurrent


def _function(line: OperatorLine) -> tuple[str, str]:
    return line.place.file, line.place.function


def at_a_loop(case: Case) -> Callable[[Sighting], bool]:
    """Whether a thread was seen at a line of such a loop."""
    places = {(line.place.file, line.place.line) for line in loops(case)}

    def at_one(sighting: Sighting) -> bool:
        line = sighting.line
        return line is not None and (line.file, line.line) in places

    return at_one
