"""The machine has too little memory, and keeps some of the job's on a disk."""

from __future__ import annotations

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.wording import percent, size

SWAPPED = 64 * 2**20
"""Bytes. A little that nobody asks for again lies on a disk in most machines."""
READ_BACK = 1e-4
"""Seconds for a page, from a good disk. Assumed: a slow one takes a hundred times as long."""
MOST = 0.9


def swapping(case: Case) -> Finding | None:
    look = case.inspection
    if look is None or look.swapped is None or look.swapped < SWAPPED or not look.steps:
        # Pages that are read without any on a disk are those of files: data, or libraries.
        return None
    faults = look.major_faults / look.steps
    share = min(faults * READ_BACK / case.figures.step.mean, MOST)
    return Finding(
        rule="swapping",
        title=f"{size(look.swapped)} of the job's memory lie on a disk",
        share=share if share >= LEAST_SHARE else 0.0,
        remedy="Let the job, or what runs beside it, use less memory.",
        effort=Effort.LINES,
        evidence=(
            f"{faults:,.0f} pages a step are read back",
            f"estimate: that is {percent(share)} of a step, at {READ_BACK * 1e6:.0f} µs a page",
        ),
        is_limit=share >= LEAST_SHARE,
    )
