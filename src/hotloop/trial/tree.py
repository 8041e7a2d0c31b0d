"""The memory of the processes a trial started, seen from outside.

Read from /proc by hand: walking all processes of the machine several times a second would itself
take the CPU that is being measured.
"""

from __future__ import annotations

from pathlib import Path


class ProcessTree:
    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.main_now: int | None = None
        self.worker_peaks: dict[int, int] = {}

    def look(self) -> None:
        """Cheap enough for once a second. Where there is no /proc, nothing is known."""
        self.main_now = _status(self._pid, "VmRSS") or self.main_now
        for pid in _descendants(self._pid):
            peak = _status(pid, "VmHWM")
            if peak is not None:
                self.worker_peaks[pid] = peak


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    pending = [pid]
    while pending:
        current = pending.pop()
        try:
            text = Path(f"/proc/{current}/task/{current}/children").read_text(encoding="ascii")
        except OSError:
            continue
        children = [int(word) for word in text.split()]
        found += children
        pending += children
    return found


def _status(pid: int, field: str) -> int | None:
    """Bytes. None: gone, or unknown."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    for line in lines.splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    return None
