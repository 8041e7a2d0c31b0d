"""More threads compute than there are cores: they wait for each other, and for their turn."""

from __future__ import annotations

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.threads import computing, places
from hotloop.diagnose.wording import percent, times
from hotloop.levers.threads import LOST

TOO_MANY = 1.5
"""Times the cores. Up to that a thread more does little harm."""


def too_many_threads(case: Case) -> Finding | None:
    threads = case.measurement.inventory.threads
    if case.on_gpu or threads < TOO_MANY * case.cores:
        return None
    share = computing(case) * LOST * (1 - case.cores / threads)
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
            f"assumed: so many threads lose {percent(LOST * (1 - case.cores / threads))} of it",
        ),
        places=places(case),
        levers=("threads",),
    )
