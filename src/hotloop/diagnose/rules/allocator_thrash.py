"""torch's allocator asks the driver for memory in the middle of the training, and gives it back.

It keeps what it once got, so that steps need nothing new. Where every step wants blocks of another
size it asks again, and once nothing is left it frees all it keeps, for which the GPU must be done.
"""

from __future__ import annotations

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.gpu_time import QUEUEING, GpuTime, gpu_time
from hotloop.diagnose.heavy_lines import by_bytes, heavy_lines
from hotloop.diagnose.wording import percent, size, times
from hotloop.inspection import Allocator

OFTEN = 0.5
"""Calls a step. A job in its stride needs none; now and then a rare size comes along."""
MOST_A_CALL = 5e-3
"""Seconds for getting a segment and giving back another, the wait in between included."""
A_KERNEL = 20e-6
"""Seconds of idling for each kernel that the CPU needs anyhow, to queue it."""


def allocator_thrash(case: Case) -> Finding | None:
    look = case.inspection
    allocator = look.allocator if look else None
    if look is None or allocator is None or not look.steps:
        return None
    steps = allocator.steps or look.steps
    calls = (allocator.driver_calls + allocator.retries) / steps
    if calls < OFTEN:
        return None
    gpu = gpu_time(case)
    share = _won(case, gpu, calls) if gpu else 0.0
    if gpu is not None and share < LEAST_SHARE and not allocator.retries:
        return None
    return Finding(
        rule="allocator_thrash",
        title=f"The allocator goes to the driver for memory {times(calls, 'time')} a step",
        share=share,
        remedy="Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or pad batches to few sizes.",
        effort=Effort.SETTING,
        evidence=_evidence(steps, allocator, share),
        places=heavy_lines(case, by_bytes),  # which ask for most
        levers=("allocator",),
        is_limit=share >= LEAST_SHARE,
    )


def _won(case: Case, gpu: GpuTime, calls: float) -> float:
    """The GPU idles meanwhile: as much as queueing does not explain, and calls can take."""
    idle = sum(gpu.idle.get(why, 0.0) for why in QUEUEING) / gpu.steps
    unexplained = max(idle - gpu.kernels / gpu.steps * A_KERNEL, 0.0)
    return min(unexplained, calls * MOST_A_CALL) / case.figures.step.mean


def _evidence(steps: int, allocator: Allocator, share: float) -> tuple[str, ...]:
    unused = max(allocator.reserved - (allocator.peak_allocated or allocator.allocated), 0)
    return (
        f"{allocator.driver_calls} segments were asked of the driver in {steps} steps",
        f"{times(allocator.retries, 'time')} all it kept had to be given back first",
        f"{size(unused)} of {size(allocator.reserved)} reserved are never in use at once",
        *([f"it was told {allocator.settings}"] if allocator.settings else []),
        *(
            [f"the GPU idles for {percent(share)} of a step, more than queueing takes"]
            * (share > 0)
        ),
    )
