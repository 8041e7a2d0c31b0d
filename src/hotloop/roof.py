"""What a machine can do at most: its roof, against which a job's own figures are read.

A job at 90% of the roof is done; a job at 9% is not. What could not be measured is None, or missing
from a table: never zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field

PRECISIONS = ("float32", "tf32", "bfloat16", "float16")
"""By the names that figures of matrix products are kept under."""


@dataclass(frozen=True)
class Roof:
    """Rates a second, as measured. `runtime/roof.py` measures, `roofs.py` keeps."""

    device: str = "cpu"
    """The name of the first visible GPU; cpu without one."""
    torch: str | None = None
    driver: str | None = None
    cpu: str | None = None
    threads: int | None = None
    """That torch uses for one operator on the CPU."""
    measured_on: str = ""
    """The day, as 2030-12-31: a roof is kept, and the machine may have changed since."""
    disturbed: bool = False
    """Whether other work kept the cores busy meanwhile: the figures are too low then."""

    matrix_flops: dict[str, float] = field(default_factory=dict)
    """FLOP/s of a large product on the GPU, by precision."""
    memory_bandwidth: float | None = None
    """Bytes/s read and written together by a large copy inside the GPU's memory."""
    host_to_device_pinned: float | None = None
    host_to_device_pageable: float | None = None
    launch_seconds: float | None = None
    """Of the CPU's time, to queue one tiny operator; without a GPU, to run one."""

    cpu_matrix_flops: dict[str, float] = field(default_factory=dict)
    """FLOP/s of a large product on the CPU with all of torch's threads, by precision."""
    cpu_matrix_flops_one_thread: float | None = None
    """In float32."""
    cpu_memory_bandwidth: float | None = None
    """Bytes/s read and written together by a large copy."""
    disk_read: float | None = None
    """Bytes/s of one reader, the page cache left out. Known only where a folder was named."""
