"""The GPU works faster than the CPU queues: many short kernels, and gaps between them."""

from __future__ import annotations

import statistics

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.gpu_time import gpu_time
from hotloop.diagnose.heavy_lines import by_operators, heavy_lines
from hotloop.diagnose.kernel_times import kernels
from hotloop.diagnose.wait_prices import queueing
from hotloop.diagnose.wording import percent, seconds, times

MOST_A_KERNEL = 100e-6
"""Seconds of idling for each kernel. An operator takes the CPU 5 to 30 µs, a backward node twice
that; where more passes, the CPU is busy with something else than queueing."""
FEW_KERNELS = 20
"""A step. So few are no queue."""


def launch_bound(case: Case) -> Finding | None:
    gpu = gpu_time(case)
    if gpu is None:
        return None
    idle = queueing(case, gpu)
    waiting = idle * gpu.steps / gpu.seconds
    share = max(idle - _handing_over(case), 0.0) * gpu.steps / gpu.seconds
    each = idle * gpu.steps / gpu.kernels
    if share < LEAST_SHARE or each > MOST_A_KERNEL or gpu.kernels / gpu.steps < FEW_KERNELS:
        return None
    compiled = any(model.compiled for model in case.measurement.inventory.models)
    usual = statistics.median(kernel.seconds for kernel in kernels(case))
    launch = case.roof.launch_seconds if case.roof else None
    return Finding(
        rule="launch_bound",
        title=f"The GPU waits for its next kernel for {percent(waiting)} of a step",
        share=share,
        remedy=(
            'Replay the kernels as CUDA graphs: torch.compile(mode="reduce-overhead").'
            if compiled
            else "Compile the model, with CUDA graphs where shapes are fixed; or enlarge the batch."
        ),
        effort=Effort.SETTING,
        evidence=(
            f"{times(gpu.kernels / gpu.steps, 'kernel')} a step, of {seconds(usual)} at the median",
            f"{seconds(each)} pass for each of them in which nothing runs",
            f"the GPU is busy for {percent(gpu.busy_share)} of a step",
            *([f"queueing one takes {seconds(launch)} at the very least"] if launch else []),
        ),
        places=heavy_lines(case, by_operators),
        levers=() if compiled else ("model_graph", "compile"),
    )


def _handing_over(case: Case) -> float:
    """Seconds a step that stay: each gradient is copied to where the optimizer finds it."""
    tensors = sum(one.tensors for one in case.measurement.inventory.optimizers)
    return tensors * ((case.roof.launch_seconds if case.roof else None) or 0.0)
