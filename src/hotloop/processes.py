"""What processes hold in memory, and the CPU time they have used, seen from outside.

Read from /proc by hand: walking all processes of the machine several times a second would itself
take the CPU that is being measured.
"""

from __future__ import annotations

import os
from pathlib import Path

SHARED = ("Shared_Clean", "Shared_Dirty")
SAYS_WHAT_IS_SHARED = os.path.exists("/proc/self/smaps_rollup")
"""Where the kernel does not, all that a process holds counts."""


def descendants(pid: int) -> dict[int, int] | None:
    """Each with its parent. None: the process is gone, or nobody says who its children are."""
    children = _children(pid)
    if children is None:
        return None
    found = dict.fromkeys(children, pid)
    pending = list(found)
    while pending:
        parent = pending.pop()
        for child in _children(parent) or ():
            found[child] = parent
            pending.append(child)
    return found


def peak_of(pid: int) -> int | None:
    """Bytes, the kernel's own high-water mark. None: the process is gone, or that is unknown."""
    return _field(_status(pid), "VmHWM")


def resident(pid: int) -> int | None:
    return _field(_status(pid), "VmRSS")


def cpu_seconds(pid: int, with_ended: bool = False) -> float | None:
    """That it has used, all its threads together. None: the process is gone, or that is unknown.

    `with_ended`: and all that its children had used, as far as they have ended.
    """
    text = _read(f"/proc/{pid}/stat")
    fields = text.rpartition(")")[2].split() if text else []  # after its name: that may be anything
    counted = fields[11:15] if with_ended else fields[11:13]
    return sum(map(int, counted)) / os.sysconf("SC_CLK_TCK") if fields else None


def held_by(children: dict[int, int]) -> int:
    """Bytes that these processes, each with its parent, hold beyond what they share.

    Each counts with its own peak, which a look cannot miss as long as the process lives.
    """
    return sum(_held_alone(pid, parent) or 0 for pid, parent in children.items())


def _held_alone(pid: int, parent: int) -> int | None:
    """A forked process begins with all that its parent holds, and takes nothing for that."""
    status = _status(pid)
    if _memory_lines(status) == _memory_lines(_status(parent)):
        return 0  # by vfork, and about to become another program: its memory is its parent's own
    shares = _read(f"/proc/{pid}/smaps_rollup")
    if shares is None and SAYS_WHAT_IS_SHARED:
        return None  # it is about to end
    parts = [_field(shares, name) for name in SHARED]
    peak = peak_of(pid)
    if peak is None or peak_of(parent) is None:
        return None  # what a parent that has ended held is no more shared with it
    return max(0, peak - sum(part or 0 for part in parts))


def _children(pid: int) -> list[int] | None:
    """Those of all its threads: each has a list of those that it has started."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return None
    lists = [_read(f"/proc/{pid}/task/{thread}/children") for thread in threads]
    if all(text is None for text in lists):
        return None
    return [int(word) for text in lists if text for word in text.split()]


def _status(pid: int) -> str | None:
    return _read(f"/proc/{pid}/status")


def _memory_lines(status: str | None) -> list[str]:
    return [line for line in (status or "").splitlines() if line.startswith(("Vm", "Rss"))]


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="ascii", errors="replace")
    except OSError:
        return None


def _field(text: str | None, name: str) -> int | None:
    for line in (text or "").splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    return None
