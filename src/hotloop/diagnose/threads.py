"""What the rules about threads have in common."""

from __future__ import annotations

from hotloop.diagnose.base import Case
from hotloop.diagnose.call_sites import distinct
from hotloop.diagnose.sightings import innermost
from hotloop.inspection import Frame, OperatorLine
from hotloop.timeline import Phase

SET = "set_num_threads"
GRAIN = 32_768
"""Elements below which torch leaves an operator to one thread."""
SMALL_PRODUCT = 1e6
"""FLOPs. A product of fewer is over before another thread has begun."""


def computing(case: Case) -> float:
    """The share of a step in which torch computes: threads do nothing for one that waits."""
    return case.share(Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)


def shared(case: Case) -> float | None:
    """The part of the operators' time in which there is enough for several threads to do."""
    operators = case.inspection.operators if case.inspection else None
    lines = operators.lines if operators else []
    whole = sum(line.seconds + line.backward_seconds for line in lines)
    if not whole:
        return None
    large = [line for line in lines if _is_large(line)]
    return sum(line.seconds + line.backward_seconds for line in large) / whole


def _is_large(line: OperatorLine) -> bool:
    count = line.operators + line.backward_operators
    return line.median_elements >= GRAIN or line.flops >= SMALL_PRODUCT * count


def places(case: Case) -> tuple[Frame, ...]:
    """Where the number was set, if the script did that itself."""
    calls = case.inspection.calls if case.inspection else []
    lines = (innermost(call.stack) for call in calls if SET in call.what)
    return distinct(line for line in lines if line is not None)
