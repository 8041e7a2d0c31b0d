"""The GPU's memory is nearly full. A remark: that by itself takes no time."""

from __future__ import annotations

from hotloop.diagnose.base import Case, Effort, Finding
from hotloop.diagnose.wording import percent, size

FULL = 0.9
"""Of the GPU's memory. A longer sequence, or fragments, and the job runs out of it."""


def memory_capacity(case: Case) -> Finding | None:
    memory = case.measurement.memory
    reserved, total = memory.device_peak_reserved, memory.device_total
    if not reserved or not total or reserved < FULL * total:
        return None
    used = memory.device_peak_allocated
    return Finding(
        rule="memory_capacity",
        title=f"{percent(reserved / total)} of the GPU's memory is taken",
        share=0.0,
        remedy="Before anything grows: a lower precision, checkpointed blocks or a smaller batch.",
        effort=Effort.LINES,
        evidence=(
            f"{size(reserved)} of {size(total)} were reserved at the peak",
            *([f"{size(used)} of them were in use"] if used is not None else []),
        ),
        is_limit=False,
    )
