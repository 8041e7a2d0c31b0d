"""The memory of the processes a trial started, looked at again and again."""

from __future__ import annotations

import time
from collections.abc import Callable

from hotloop import processes

REST = 100.0
"""Times what it took to ask who shares what with whom: the kernel walks through all of a process's
memory for that, some 20 ms a gigabyte, and the trial is to have the CPU."""


class ProcessTree:
    def __init__(self, pid: int, is_entered: Callable[[], bool] = lambda: True) -> None:
        """`is_entered`: whether it is the job by now. What came before had a child of its own."""
        self._pid = pid
        self._is_entered = is_entered
        self._not_before = 0.0
        self.main_now: int | None = None
        self.worker_peaks: dict[int, int] = {}
        self.children_peak: int | None = None
        """Of all that lived at the same time, beyond what they share."""

    def look(self) -> None:
        """Cheap enough for once a second. Where there is no /proc, nothing is known."""
        if not self._is_entered():
            return
        self.main_now = processes.resident(self._pid) or self.main_now
        children = processes.descendants(self._pid)
        if children is None:
            return
        for pid in children:
            peak = processes.peak_of(pid)
            if peak is not None:
                self.worker_peaks[pid] = peak
        began = time.monotonic()
        if began >= self._not_before:
            self.children_peak = max(self.children_peak or 0, processes.held_by(children))
            ended = time.monotonic()
            self._not_before = ended + REST * (ended - began)
