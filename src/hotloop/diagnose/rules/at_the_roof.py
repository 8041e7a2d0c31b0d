"""The job does nearly what this machine can do: there is not much left to win. A remark."""

from __future__ import annotations

from hotloop.diagnose.base import Case, Effort, Finding
from hotloop.diagnose.gpu_time import gpu_time
from hotloop.diagnose.numbers import Numbers, numbers
from hotloop.diagnose.wording import percent

NEAR_PEAK = 0.6
"""Of the measured matrix rate, over whole steps. A GPT-2 that was tuned by hand got to 0.57 on an
H200: norms, activations, the loss and the optimizer take their part, and it is not small."""
NEAR_BANDWIDTH = 0.7
MOST_BANDWIDTH = 1.1
"""The rate was measured by copying, which is not the quickest. Beyond that, bytes come out of a
cache, and the memory is not what limits."""
BUSY = 0.9
"""Of a step. A GPU that idles more is not at its roof, whatever it does in between."""


def at_the_roof(case: Case) -> Finding | None:
    if case.roof is not None and case.roof.disturbed:
        return None  # measured beside other work it is too low, and anything reaches it
    found = numbers(case)
    arithmetic = found.mfu_measured or 0.0
    traffic = _traffic(case, found)
    if not _is_busy(case) or (arithmetic < NEAR_PEAK and traffic < NEAR_BANDWIDTH):
        return None
    what, share = max(
        ("arithmetic", arithmetic), ("memory bandwidth", traffic), key=lambda one: one[1]
    )
    where = "GPU" if case.on_gpu else "CPU"
    return Finding(
        rule="at_the_roof",
        title=f"The job runs at {percent(min(share, 1.0))} of what this {where} can do ({what})",
        share=0.0,
        remedy="Only less work would be faster: a smaller model, fewer steps, or a faster machine.",
        effort=Effort.REWRITE,
        evidence=_evidence(found, traffic),
        cause=what,
        is_limit=False,
    )


def _traffic(case: Case, found: Numbers) -> float:
    """Compiled code moves less than is counted: nothing is known of it then."""
    compiled = any(model.compiled for model in case.measurement.inventory.models)
    reached = found.bandwidth_utilisation or 0.0
    return 0.0 if compiled or reached > MOST_BANDWIDTH else reached


def _is_busy(case: Case) -> bool:
    gpu = gpu_time(case)
    if gpu is not None:
        return gpu.busy_share >= BUSY
    # Without the GPU's record: where the CPU is, says nothing of what the GPU does.
    return not case.on_gpu and case.share("forward", "backward", "optimizer") >= BUSY


def _evidence(found: Numbers, traffic: float) -> tuple[str, ...]:
    lines = []
    if found.mfu_measured is not None and found.flops_second is not None:
        bound = "at least " if found.flops_are_lower_bound else ""
        lines.append(
            f"{bound}{found.flops_second / 1e12:.3g} TFLOP/s, {percent(found.mfu_measured)} of "
            "the matrix rate that was measured here"
        )
    if traffic:
        lines.append(f"its operators move bytes at {percent(traffic)} of the bandwidth")
    if found.gpu_busy is not None:
        lines.append(f"the GPU is busy for {percent(found.gpu_busy)} of a step")
    return tuple(lines)
