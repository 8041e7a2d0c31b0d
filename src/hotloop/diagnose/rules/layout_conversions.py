"""Tensors are turned from channels first to channels last and back around convolutions.

cuDNN's fast kernels want the channels last. Given another order, it converts what goes in and what
comes out, every time; so does torch where the two orders meet.
"""

from __future__ import annotations

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.heavy_lines import by_flops, heavy_lines
from hotloop.diagnose.kernel_kinds import Work, is_strided_copy
from hotloop.diagnose.kernel_times import Kernel, kernels, seconds_a_step, share_won
from hotloop.diagnose.wording import percent, seconds, times


def layout_conversions(case: Case) -> Finding | None:
    found = kernels(case)
    if not any(kernel.work is Work.CONVOLUTION for kernel in found):
        return None
    turning = [kernel for kernel in found if _turns(kernel)]
    share = share_won(case, seconds_a_step(case, turning, lambda kernel: kernel.is_queued_up))
    if share < LEAST_SHARE:
        return None
    models = case.measurement.inventory.models
    already = any(model.channels_last for model in models)
    steps = case.inspection.kernels.steps if case.inspection and case.inspection.kernels else 1
    return Finding(
        rule="layout_conversions",
        title=f"Turning tensors from one layout to another takes {percent(share)} of a step",
        share=share,
        remedy=(
            "Find what still has its channels first: inputs, or a .contiguous() in between."
            if already
            else "Keep model and inputs with channels last: .to(memory_format=torch.channels_last)."
        ),
        effort=Effort.LINES if already else Effort.SETTING,
        evidence=(
            f"{times(len(turning) / steps, 'conversion')} a step take "
            f"{seconds(seconds_a_step(case, turning))} on the GPU",
            f"mostly {_name(turning)}",
            f"the weights have their channels {'last' if already else 'first'}",
        ),
        places=heavy_lines(case, by_flops),
        levers=() if already else ("channels_last",),
    )


def _turns(kernel: Kernel) -> bool:
    return kernel.work is Work.LAYOUT or is_strided_copy(kernel.name)


def _name(turning: list[Kernel]) -> str:
    dearest = max(turning, key=lambda kernel: kernel.seconds).name
    if is_strided_copy(dearest):
        return "torch's own copies"
    return dearest.partition("<")[0].rpartition("::")[2] or dearest[:60]
