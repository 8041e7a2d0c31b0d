"""How long a thread has computed, or wanted to and was not given a core."""

from __future__ import annotations

import contextlib
import os
from time import thread_time

SCHEDULER = "/proc/thread-self/schedstat"
"""Nanoseconds on a core, and nanoseconds in the queue for one."""


class Occupation:
    """Of the thread that made it. What is left of a span of time it waited for something else.

    Without the kernel's word for it, time in the queue counts as waiting: on a busy machine that
    looks as a slow disk does.
    """

    def __init__(self) -> None:
        self._file = -1
        with contextlib.suppress(OSError):
            self._file = os.open(SCHEDULER, os.O_RDONLY | os.O_CLOEXEC)

    def seconds(self) -> float:
        return thread_time() + self.queued()

    def queued(self) -> float:
        """Of these, those in the queue."""
        if self._file < 0:
            return 0.0
        try:
            return int(os.pread(self._file, 64, 0).split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return 0.0
