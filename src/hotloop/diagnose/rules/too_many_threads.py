"""More threads compute than there are cores: they wait for each other, and for their turn."""

from __future__ import annotations

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.threads import computing, places
from hotloop.diagnose.wording import percent, seconds, times
from hotloop.levers.threads import LOST

TOO_MANY = 1.5
"""Times the cores. Up to that a thread more does little harm."""


def too_many_threads(case: Case) -> Finding | None:
    threads = case.measurement.inventory.threads
    if case.on_gpu or threads < TOO_MANY * case.cores:
        return None
    share, how = _lost(case, threads)
    if share < LEAST_SHARE:
        return None
    return Finding(
        rule="too_many_threads",
        title=f"torch computes with {times(threads, 'thread')} on {times(case.cores, 'core')}",
        share=share,
        remedy="Leave the number to torch: no torch.set_num_threads, no OMP_NUM_THREADS.",
        effort=Effort.SETTING,
        evidence=(
            f"{percent(computing(case))} of a step is computing, on the CPU",
            how,
        ),
        places=places(case),
        levers=("threads",),
    )


def _lost(case: Case, threads: int) -> tuple[float, str]:
    """The share of a step, and where that is known from."""
    tried = case.inspection.threads_tried if case.inspection else None
    if tried is None:
        lost = LOST * (1 - case.cores / threads)
        return computing(case) * lost, f"assumed: so many threads lose {percent(lost)} of it"
    fewer = f"{seconds(tried.seconds)} with {times(tried.threads, 'thread')}"
    how = f"tried in turns: a step takes {fewer}, and {seconds(tried.own_seconds)} as it is"
    return max(0.0, 1 - tried.seconds / tried.own_seconds), how
