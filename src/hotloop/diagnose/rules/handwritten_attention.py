"""Attention is written out: the whole matrix of scores is made, kept, and gone over many times."""

from __future__ import annotations

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.kernel_kinds import Work, is_forward_softmax
from hotloop.diagnose.kernel_times import kernels, seconds_a_step, share_won
from hotloop.diagnose.peaks import operators
from hotloop.diagnose.wording import at, percent, times
from hotloop.inspection import Attention, OperatorLine, Operators

LEFT_ON_CPU = 0.2
"""Of its time, by the fused kernel: measured with 512 positions and heads of 16, nothing beside it.
It does the same two products, but block by block in the cache. Larger heads leave more."""
BEFORE, AFTER = 4, 3
"""Lines around the softmax, in its function, that scale, mask, drop and spend the scores."""
PASSES = 8
"""Over the scores, as long as a softmax each, that fused attention does without. Forward: written
by a product, scaled, masked, softmax, read by a product. Backward: the same again, and more."""

BY_HAND = (
    "Attention written by hand",
    "Call torch.nn.functional.scaled_dot_product_attention instead.",
)
ASKED = (
    "Attention asked for its weights",
    "Call nn.MultiheadAttention with need_weights=False where nobody reads them: it fuses then.",
)


def handwritten_attention(case: Case) -> Finding | None:
    counted = operators(case)
    if counted is None or not counted.attention or _is_fused_already(case):
        return None
    share = _won(case, counted)
    if share < LEAST_SHARE:
        return None
    dear = sorted(counted.attention, key=lambda one: -one.seconds)
    what, remedy = ASKED if dear[0].tells_weights else BY_HAND
    return Finding(
        rule="handwritten_attention",
        title=f"{what}, {at(dear[0].place)}, costs {percent(share)} of a step",
        share=share,
        remedy=remedy,
        effort=Effort.LINES,
        evidence=tuple(_line(one, counted) for one in dear[:5]),
        places=tuple(one.place for one in dear),
        levers=("fused_attention",),
    )


def _won(case: Case, counted: Operators) -> float:
    softmax = seconds_a_step(
        case, kernels(case), lambda one: is_forward_softmax(one.name) and one.is_queued_up
    )
    if softmax:
        return share_won(case, softmax * PASSES)
    if case.on_gpu:
        return 0.0  # on the CPU's clock its operators only took the time to be queued
    return _of_the_passes(case, counted) * (1 - LEFT_ON_CPU)


def _of_the_passes(case: Case, counted: Operators) -> float:
    """Its share of the forward and backward passes, by the lines that it is written on.

    Such a line may do much else: where a library has written it, it is the script's call of the
    whole model. So it is as much of them as its own operators are of theirs, forward.
    """
    forward = [line for line in counted.lines if line.phase == "forward"]
    whole = sum(_both_ways(line) for line in forward)
    written = [line for line in forward if _is_part(line, counted.attention)]
    own = sum(one.seconds for one in counted.attention)
    on_its_lines = sum(line.seconds for line in written)
    part = min(own / on_its_lines, 1.0) if on_its_lines else 0.0
    spent = sum(map(_both_ways, written)) * part
    if not whole:  # no lines were kept: its operators forward, and as many of the backward pass
        whole, spent = counted.seconds / 3, own
    return min(spent / whole, 1.0) * case.share("forward", "backward") if whole else 0.0


def _both_ways(line: OperatorLine) -> float:
    return line.seconds + line.backward_seconds


def _is_part(line: OperatorLine, attention: list[Attention]) -> bool:
    return any(
        (line.place.file, line.place.function) == (one.place.file, one.place.function)
        and -BEFORE <= line.place.line - one.place.line <= AFTER
        for one in attention
    )


def _is_fused_already(case: Case) -> bool:
    """By a compiler: operators are counted without it."""
    return any(kernel.work is Work.ATTENTION for kernel in kernels(case))


def _line(one: Attention, counted: Operators) -> str:
    each, kept = one.count / counted.steps, (one.count - one.forgotten) / counted.steps
    line = (
        f"{at(one.place)}: {times(each, 'time')} a step, {one.queries} queries by {one.keys} keys"
    )
    if not kept:
        return line
    which = f"{kept:.3g} of them" if one.forgotten else "each"
    return f"{line}, {which} kept in memory until the backward pass"
