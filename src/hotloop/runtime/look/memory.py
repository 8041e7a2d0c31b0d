"""Memory after each step, on the host and on the device, and what the allocator had to do."""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path
from typing import Any

from hotloop.inspection import Allocator
from hotloop.levers.allocator import VARIABLES


class MemoryProbe:
    def __init__(self, torch: Any) -> None:
        self._cuda = torch.cuda
        self._began: dict[str, int] = {}
        self._faults: int | None = None
        self.host: list[int] = []
        self.device: list[int] = []
        self.allocator: Allocator | None = None

    def begin(self) -> None:
        self._faults = _major_faults()
        if self._cuda.is_initialized():
            self._began = self._cuda.memory_stats()

    def note_step(self) -> None:
        self.host.append(_resident())
        if self._cuda.is_initialized():
            self.device.append(self._cuda.memory_allocated())

    def end(self) -> None:
        """Before anything that takes memory of its own."""
        if not self._began:
            return
        now = self._cuda.memory_stats()
        self.allocator = Allocator(
            steps=len(self.host),
            retries=self._since("num_alloc_retries", now),
            driver_calls=self._since("num_device_alloc", now),
            reserved=now.get("reserved_bytes.all.current", 0),
            allocated=now.get("allocated_bytes.all.current", 0),
            peak_allocated=now.get("allocated_bytes.all.peak", 0),
            settings=next((os.environ[name] for name in VARIABLES if os.environ.get(name)), ""),
        )

    @property
    def faults(self) -> int:
        return 0 if self._faults is None else _major_faults() - self._faults

    def _since(self, name: str, now: dict[str, int]) -> int:
        return now.get(name, 0) - self._began.get(name, 0)


def swapped() -> int | None:
    """Bytes of the process that lie on a disk. None where the kernel does not say."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmSwap:"):
                return int(line.split()[1]) * 1024
    return None


def _major_faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt


def _resident() -> int:
    try:
        fields = Path("/proc/self/statm").read_text(encoding="ascii").split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
