"""A measurement beside other work is none: wait until the machine is quiet, and measure again.

What other processes take is read from /proc, before and after. Where there is no /proc, nothing is
known of them, and everything is taken as it comes.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

PROC = Path("/proc")
QUIET = 0.1
"""Of one core, by all others together. Less than that is always there."""
ATTEMPTS = 2
LOOK_SECONDS = 1.5
LONGEST_WAIT = 20.0
DEAD = "ZX"
"""States of a process that has ended and was not yet waited for."""
TICKS = os.sysconf("SC_CLK_TCK")
T = TypeVar("T")


def undisturbed(measure: Callable[[], T]) -> tuple[T, float]:
    """What was measured, and the share of a core that others took meanwhile: the least of some."""
    found: list[tuple[T, float]] = []
    while len(found) < ATTEMPTS and not (found and found[-1][1] < QUIET):
        wait_until_quiet()
        before, began = _spent(), time.monotonic()
        result = measure()
        found.append((result, _others(before, _spent()) / (time.monotonic() - began)))
    return min(found, key=lambda one: one[1])


def wait_until_quiet() -> None:
    """Or until it is clear that it will not be."""
    deadline = time.monotonic() + LONGEST_WAIT
    while time.monotonic() < deadline:
        before = _spent()
        time.sleep(LOOK_SECONDS)
        if _others(before, _spent()) < QUIET * LOOK_SECONDS:
            return


def _others(before: dict[int, float], after: dict[int, float]) -> float:
    """Seconds on a core. Whoever ended meanwhile is counted with the process that waited for it."""
    return sum(max(spent - before.get(pid, 0.0), 0.0) for pid, spent in after.items())


def _spent() -> dict[int, float]:
    """Seconds on a core so far, with those of ended children, by process; ours are left out.

    So is the first process: whatever our own jobs leave behind is handed to it, and is dead.
    """
    mine = {1, os.getpid()}
    found = {}
    for folder in PROC.glob("[0-9]*"):
        pid = int(folder.name)
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name, in brackets, may hold anything.
            fields = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            if pid not in mine and int(fields[1]) != os.getpid() and fields[0] not in DEAD:
                found[pid] = sum(int(ticks) for ticks in fields[11:15]) / TICKS
    return found
