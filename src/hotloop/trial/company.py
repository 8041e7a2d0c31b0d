"""What else kept the cores busy while a trial ran: other programs, and other virtual machines.

What the kernel counts of our cores, less what this process and all that it has started have used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Set
from dataclasses import dataclass
from pathlib import Path

from hotloop import processes

LEAST_SECONDS = 2.0
"""The kernel counts in hundredths of a second, and what a process does last nobody sees."""
IN_THE_WAY = 0.25


@dataclass(frozen=True)
class Company:
    """Shares of the time of all cores that the job could use."""

    others: float
    """Taken by other programs of this machine."""
    stolen: float
    """Taken by other virtual machines, as the host says."""
    idle: float

    @property
    def crowd(self) -> float:
        """The share that the job may have missed: none where others took what it did not want."""
        return self.others + self.stolen if self.idle <= IN_THE_WAY else 0.0


@dataclass(frozen=True)
class _Cores:
    """Since the machine was started, in seconds of one core."""

    total: float
    idle: float
    stolen: float


@dataclass(frozen=True)
class _Look:
    cores: _Cores
    ours: float


class CompanyMeter:
    """Of one trial. Where there is no /proc, or it says nothing, nothing is known."""

    def __init__(
        self,
        ours: Callable[[], float | None] = lambda: used_by_all(os.getpid()),
        root: Path = Path("/"),
    ) -> None:
        self._ours, self._stat = ours, root / "proc/stat"
        self._first = self._last = self._taken()

    def look(self) -> None:
        """Cheap enough for once a second."""
        self._last = self._taken() or self._last

    def company(self) -> Company | None:
        if self._first is None or self._last is None:
            return None
        began, ended = self._first.cores, self._last.cores
        passed = ended.total - began.total
        if passed < LEAST_SECONDS * len(_own_cores()):
            return None
        idle, stolen = ended.idle - began.idle, ended.stolen - began.stolen
        others = passed - idle - stolen - (self._last.ours - self._first.ours)
        return Company(*(min(1.0, max(0.0, part / passed)) for part in (others, stolen, idle)))

    def _taken(self) -> _Look | None:
        cores, ours = _counted(self._stat, _own_cores()), self._ours()
        return None if cores is None or ours is None else _Look(cores, ours)


def used_by_all(pid: int) -> float | None:
    """CPU seconds of a process and all that it has started, those that have ended included.

    What a process that has ended had used is its parent's from then on, so that the sum goes on.
    """
    own = processes.cpu_seconds(pid, with_ended=True)
    if own is None:
        return None
    children = processes.descendants(pid) or {}
    return own + sum(processes.cpu_seconds(child, with_ended=True) or 0.0 for child in children)


def _own_cores() -> Set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else frozenset()


def _counted(stat: Path, own: Set[int]) -> _Cores | None:
    """user, nice, system, idle, iowait, irq, softirq, steal; a guest's time is in user's."""
    try:
        lines = [line.split() for line in stat.read_text(encoding="ascii").splitlines()]
    except OSError:
        return None
    names = {f"cpu{core}" for core in own}
    found = [[int(word) for word in words[1:9]] for words in lines if words and words[0] in names]
    if not found or any(len(times) < 8 for times in found):
        return None
    tick = 1 / os.sysconf("SC_CLK_TCK")
    columns = [tick * sum(column) for column in zip(*found, strict=True)]
    return _Cores(sum(columns), columns[3] + columns[4], columns[7])
