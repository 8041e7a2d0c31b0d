"""Products are computed in a wider format than need be, while faster units stand idle.

On a GPU: in FP32 proper, where tensor cores would do TF32 many times faster; or in TF32, where they
would do bfloat16 twice as fast, and fused attention several times: its fastest kernels take 16-bit
numbers alone. On a CPU: in FP32, where this one multiplies bfloat16 faster.
"""

from __future__ import annotations

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.heavy_lines import by_flops, heavy_lines
from hotloop.diagnose.kernel_kinds import Work, number_format
from hotloop.diagnose.kernel_times import kernels, seconds_a_step, share_won
from hotloop.diagnose.peaks import operators, peaks, uses_tf32
from hotloop.diagnose.wording import percent, seconds

REACHED = 0.7
"""Of the faster format's peak. Tensor cores ask for larger products than most models have."""
WORTH = 1.3
"""Times as fast. On a CPU casts eat up what is less."""
ATTENTION = 5.0
"""Times as fast is fused attention in 16 bits: taken for granted, as no roof measures it."""
FASTER = {"float32": ("tf32", "bfloat16", "float16"), "tf32": ("bfloat16", "float16")}
"""What may be turned to, the one that changes least first."""
NAMES = {"float32": "FP32", "tf32": "TF32", "bfloat16": "bfloat16", "float16": "float16"}
REMEDIES = {
    "tf32": 'Let products use TF32: torch.set_float32_matmul_precision("high").',
    "bfloat16": "Run forward passes and losses under autocast in bfloat16.",
    "float16": "Run forward passes and losses under autocast in float16, with a GradScaler.",
}
LEVERS = {"tf32": ("tf32", "bf16"), "bfloat16": ("bf16",), "float16": ("fp16",)}


def fp32_matmul(case: Case) -> Finding | None:
    """Of the two formats that are too wide, the one that could win more."""
    found = [_in(case, wide) for wide in FASTER]
    return max((one for one in found if one), key=lambda one: one.share, default=None)


def _in(case: Case, wide: str) -> Finding | None:
    rates = peaks(case)
    narrow = next((one for one in FASTER[wide] if one in rates), None)
    if wide not in rates or narrow is None or rates[narrow] < WORTH * rates[wide]:
        return None
    spent, measured = _spent(case, wide)
    if not spent:
        return None
    after = min(_at_best(case, spent, wide, narrow), spent)
    attention = 0.0 if narrow == "tf32" else _attention(case)
    share = share_won(case, spent - after + attention * (1 - 1 / ATTENTION))
    if share < LEAST_SHARE:
        return None
    step = case.figures.step.mean
    how = "take" if measured else "take, by their FLOPs, at least"
    what = f"{NAMES[wide]} and attention in FP32" if attention else NAMES[wide]
    taken = percent(min((spent + attention) / step, 1.0))
    return Finding(
        rule="fp32_matmul",
        title=f"Matrix products in {what} take {taken} of a step",
        share=share,
        remedy=REMEDIES[narrow],
        effort=Effort.SETTING if narrow == "tf32" else Effort.LINES,
        evidence=(
            f"products and convolutions in {NAMES[wide]} {how} {seconds(spent)} a step",
            f"this machine computes {rates[wide] / 1e12:.3g} TFLOP/s in {NAMES[wide]} "
            f"and {rates[narrow] / 1e12:.3g} in {NAMES[narrow]}",
            f"in {NAMES[narrow]} they would take about {seconds(after)}",
            *(
                [
                    f"fused attention in FP32 takes {seconds(attention)} a step; its kernels for "
                    "16 bits are several times as fast"
                ]
                * (attention > 0)
            ),
        ),
        places=heavy_lines(case, by_flops),
        levers=LEVERS[narrow],
        cause=NAMES[wide],
    )


def _spent(case: Case, wide: str) -> tuple[float, bool]:
    """Seconds a step, and whether a GPU's record says so, or the number of operations."""
    found = kernels(case)
    products = [one for one in found if one.work in (Work.PRODUCT, Work.CONVOLUTION)]
    if products:
        # After some the GPU idles anyway: it waits for the CPU, and would wait longer.
        belongs = [one for one in products if number_format(one.name) == wide and one.is_queued_up]
        return seconds_a_step(case, belongs), True
    if case.on_gpu and (wide == "tf32") != uses_tf32(case):
        return 0.0, False
    flops = _flops(case) if case.on_gpu or wide == "float32" else 0.0
    most = case.share("forward", "backward") * case.figures.step.mean
    return min(flops / peaks(case)[wide], most), False


def _attention(case: Case) -> float:
    """Seconds a step of fused attention on 32-bit numbers."""
    wide = [one for one in kernels(case) if one.work is Work.ATTENTION and one.is_queued_up]
    return seconds_a_step(case, wide, lambda one: number_format(one.name) == "float32")


def _at_best(case: Case, spent: float, wide: str, narrow: str) -> float:
    rates = peaks(case)
    flops, ratio = _flops(case), rates[wide] / rates[narrow]
    usual = spent * ratio / REACHED
    by_count = flops / rates[narrow] / REACHED
    counted = operators(case)
    # FLOPs are counted for all products of 32-bit operands, also those that are fast already.
    is_whole = counted is not None and not counted.without_formula
    return min(usual, by_count) if flops and is_whole else usual


def _flops(case: Case) -> float:
    counted = operators(case)
    return counted.flops.get("float32", 0.0) / counted.steps if counted else 0.0
