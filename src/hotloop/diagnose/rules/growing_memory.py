"""Every step leaves something behind in memory: a job that runs for long will run out of it."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from hotloop import timeline
from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.trend import trend
from hotloop.diagnose.wording import percent, seconds, size

LEAST_HOST = 24 * 2**20
LEAST_DEVICE = 2**20
"""Bytes over the steps that were looked into. What is noted down meanwhile grows on the host."""
WITHOUT_A_BREAK = 0.9
"""Kendall's tau. Batches of many sizes come and go, and the heap grows for a while too."""
A_PAGE = 4096
FIRST_TOUCH = 0.7e-6
"""Seconds: a page that was never used before is cleared, and put into the process's tables."""
SLOWER = 0.1
"""Of a step, from the beginning of the timed trial to its end."""


@dataclass(frozen=True)
class Growth:
    where: str
    total: float
    a_step: float


def growing_memory(case: Case) -> Finding | None:
    growth = _growth(case)
    if growth is None:
        return None
    slower, fresh = _slower(case), _fresh_pages(case, growth)
    share = max(slower, fresh)
    evidence = [f"it grew by {size(growth.total)} while it was looked into"]
    if slower:
        evidence.append(f"steps took {percent(slower)} longer, on average, than the first ones")
    if fresh >= LEAST_SHARE:
        pages = f"{seconds(FIRST_TOUCH)} for each page of memory that was never used before"
        evidence.append(f"estimate of what growing costs a step: {pages}")
    return Finding(
        rule="growing_memory",
        title=f"Memory on the {growth.where} grows by {size(growth.a_step)} a step",
        share=share if share >= LEAST_SHARE else 0.0,
        remedy="Keep numbers rather than tensors with their history: .item() or .detach().",
        effort=Effort.LINES,
        evidence=tuple(evidence),
        is_limit=share >= LEAST_SHARE,
    )


def _growth(case: Case) -> Growth | None:
    if case.inspection is None:
        return None
    looks = (
        ("GPU", case.inspection.device_bytes, LEAST_DEVICE),
        ("host", case.inspection.host_bytes, LEAST_HOST),
    )
    for where, taken, least in looks:
        found = trend(taken)
        if found.tau >= WITHOUT_A_BREAK and found.total >= least:
            return Growth(where, found.total, found.total / (len(taken) - 1))
    return None


def _slower(case: Case) -> float:
    """The share of a step that the beginning of the trial did without."""
    disturbed = max(1, case.measurement.discovery_steps)
    took = [step.seconds for step in timeline.steps(case.measurement.events)[disturbed:]]
    found = trend(took)
    if not found.rises or found.total < SLOWER * statistics.fmean(took):
        return 0.0
    return found.total / 2 / statistics.fmean(took)


def _fresh_pages(case: Case, growth: Growth) -> float:
    if growth.where == "GPU":
        return 0.0
    cost = growth.a_step / A_PAGE * FIRST_TOUCH
    return min(cost / case.figures.step.mean, 1.0)
