"""torch.cuda.empty_cache() in the loop: it waits for the GPU, and memory is asked of it again."""

from __future__ import annotations

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.call_sites import dearest_calls, distinct
from hotloop.diagnose.gpu_time import gpu_time
from hotloop.diagnose.wording import percent, seconds

DRIVER_CALL = 2e-4
"""Seconds, for a segment of memory from the driver. Assumed: it is told by nobody."""


def empty_cache(case: Case) -> Finding | None:
    look = case.inspection
    calls = [call for call in look.calls if call.what == "empty_cache"] if look else []
    if look is None or not calls or not look.steps or not case.on_gpu:
        return None
    spent = sum(call.seconds for call in calls) / look.steps
    asked = look.allocator.driver_calls / look.steps if look.allocator else 0.0
    taken = (spent + asked * DRIVER_CALL) / case.figures.step.mean
    gpu = gpu_time(case)
    # A call that only waited for work which had to be done anyway costs nothing.
    share = min(taken, 1 - gpu.busy_share) if gpu else min(taken, 1.0)
    if share < LEAST_SHARE:
        return None
    return Finding(
        rule="empty_cache",
        title=f"Emptying the cache of GPU memory costs {percent(share)} of a step",
        share=share,
        remedy="Leave torch.cuda.empty_cache() out of the loop.",
        effort=Effort.LINES,
        evidence=(
            f"{len(calls) / look.steps:.3g} calls a step take {seconds(spent)}",
            f"{asked:.3g} segments a step are then asked of the driver again",
        ),
        places=distinct(dearest_calls(calls)),
    )
