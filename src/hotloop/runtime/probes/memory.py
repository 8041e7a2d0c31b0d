"""Peak memory of the process, of its children and of its device."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path
from typing import Any

from hotloop import processes
from hotloop.measurement import Memory


def peak(torch: Any) -> Memory:
    host = host_peak()
    if torch is None or not torch.cuda.is_initialized():
        # The launcher looks now and then; whoever lives at the end is not to be missed.
        return Memory(host_peak=host, children_peak=children_now())
    return Memory(
        host_peak=host,
        device_peak_allocated=torch.cuda.max_memory_allocated(),
        device_peak_reserved=torch.cuda.max_memory_reserved(),
        device_total=torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory,
    )


def children_now() -> int | None:
    """What those that live now held at most, beyond what they share. None: unknown."""
    children = processes.descendants(os.getpid())
    return None if children is None else processes.held_by(children)


def host_peak() -> int:
    """Bytes. The kernel's own high-water mark where it keeps one.

    `getrusage` also remembers what the process was before it became the script.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration):
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
