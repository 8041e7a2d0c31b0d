"""A loop in Python queues thousands of tiny operators, where one on whole tensors would do."""

from __future__ import annotations

import statistics

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.call_sites import distinct
from hotloop.diagnose.gpu_time import gpu_time
from hotloop.diagnose.loops import at_a_loop, loops
from hotloop.diagnose.sightings import of_a_step, sightings
from hotloop.diagnose.wording import percent, seconds, times
from hotloop.inspection import OperatorLine
from hotloop.timeline import Phase

ELEMENTS_A_SECOND = 1e9
"""What one core works off in an operator on whole tensors, roughly: it remains to be done."""
HALF = 0.5
"""Where operators are seen to take less than their numbers were to: those are worked off faster."""
TINY_NS = 10_000
"""Of a kernel: what an operator on few elements may take on a GPU."""
CALLED_FROM = (Phase.DATA, Phase.FORWARD, Phase.OPTIMIZER, Phase.REST)
"""Phases in which the user's own lines are on the stack; gradients are clipped by some."""


def python_loop(case: Case) -> Finding | None:
    lines = loops(case)
    if not lines:
        return None
    taken = _forward(case, lines) + _backward(case, lines)
    saved = min(taken * (1 - _left(case, lines, taken)), _most(case, lines))
    if saved < LEAST_SHARE:
        return None
    assert case.inspection is not None and case.inspection.operators is not None
    steps, every = case.inspection.operators.steps, case.inspection.operators.count
    queued = sum(line.operators for line in lines)
    return Finding(
        rule="python_loop",
        title=f"A Python loop over tensors takes {percent(taken)} of a step",
        share=saved,
        remedy="Do the same to whole tensors at once, or compile the function that holds the loop.",
        effort=Effort.LINES,
        evidence=(
            f"{queued / steps:,.0f} operators a step are queued there, of {every / steps:,.0f}",
            f"half of them work on {times(lines[0].median_elements, 'element')} or fewer",
            f"an operator there takes {seconds(_each(case, lines, taken))}, nearly all of it fixed",
        ),
        places=distinct(line.place for line in lines),
    )


def _forward(case: Case, lines: list[OperatorLine]) -> float:
    """Of a step: in each phase, by how often a thread was seen at these lines.

    Where nothing but large operators is beside the loop, what those took says more: a line is seen
    whenever Python's lock is free, and that is longer inside them than inside the loop.
    """
    seen, at_one = sightings(case), at_a_loop(case)
    if seen:
        elsewhere = of_a_step(case, seen, at_one, [p for p in CALLED_FROM if p != Phase.FORWARD])
        inside = of_a_step(case, seen, at_one, [Phase.FORWARD])
        if inside:
            inside = max(inside, case.share(Phase.FORWARD) - _beside(case, lines))
        return elsewhere + inside
    every = _every(case)
    whole = sum(line.seconds for line in every)
    part = sum(line.seconds for line in lines) / whole if whole else 0.0
    return case.share(Phase.FORWARD) * part


def _beside(case: Case, lines: list[OperatorLine]) -> float:
    """Of a step, what all other operators forward take at most: while counted, and fixed cost.

    1: not known, since nobody has measured what an operator costs that does nothing.
    """
    assert case.inspection is not None and case.inspection.operators is not None
    fixed = case.roof.launch_seconds if case.roof else None
    if fixed is None or case.on_gpu:
        return 1.0
    others = [line for line in _every(case) if line not in lines]
    spent = sum(line.seconds + line.operators * fixed for line in others)
    return spent / case.inspection.operators.steps / case.figures.step.mean


def _backward(case: Case, lines: list[OperatorLine]) -> float:
    every = _every(case)
    undone = sum(line.backward_seconds for line in every)
    if undone:
        part = sum(line.backward_seconds for line in lines) / undone
    else:
        whole = sum(line.differentiated for line in every)
        part = sum(line.differentiated for line in lines) / whole if whole else 0.0
    return case.share(Phase.BACKWARD) * part


def _left(case: Case, lines: list[OperatorLine], taken: float) -> float:
    """The part of the loop's time that the same work on whole tensors would still take."""
    elements = statistics.fmean(line.median_elements for line in lines)
    each = _each(case, lines, taken)
    left = elements / ELEMENTS_A_SECOND / each if each else 0.0
    return left if left <= 1 else HALF


def _each(case: Case, lines: list[OperatorLine], taken: float) -> float:
    """Seconds of one of its operators in a timed step, the backward pass's among them."""
    assert case.inspection is not None and case.inspection.operators is not None
    queued = sum(line.operators + line.backward_operators for line in lines)
    return taken * case.figures.step.mean * case.inspection.operators.steps / queued


def _most(case: Case, lines: list[OperatorLine]) -> float:
    """What a GPU still has to do without the loop's kernels cannot be won."""
    gpu = gpu_time(case) if case.on_gpu else None
    if gpu is None or case.inspection is None or case.inspection.kernels is None:
        return 1.0
    assert case.inspection.operators is not None
    queued = sum(line.operators + line.backward_operators for line in lines)
    count = round(queued / case.inspection.operators.steps * gpu.steps)
    tiny = sorted(ns for ns in case.inspection.kernels.duration_ns if ns <= TINY_NS)
    return 1 - max(gpu.busy_share - sum(tiny[:count]) / 1e9 / gpu.seconds, 0.0)


def _every(case: Case) -> list[OperatorLine]:
    operators = case.inspection.operators if case.inspection else None
    return [line for line in operators.lines if line.phase != "optimizer"] if operators else []
