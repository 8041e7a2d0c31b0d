"""A trial's own folder beside everything of the user's, which is gone when the trial is over.

Whoever is killed outright cannot remove it, and it holds the environment of the user, secrets
included. So it is held by a lock, which the kernel lets go of, and the next one to come removes
what nobody holds.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from pathlib import Path

from hotloop.trial import shielded

PREFIX = "hotloop-"
LOCK = "held"
ELSEWHERE = ("/var/tmp", "/dev/shm")


class Scratch:
    def __init__(self, protect: list[str]) -> None:
        """`protect`: the user's folders, in none of which it may lie if there is any other."""
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_base(protect)))
        unheld = self.path / f"{LOCK}.new"  # by that name nobody takes it for a forgotten one
        self._lock = os.open(unheld, os.O_RDWR | os.O_CREAT, 0o600)
        _is_taken(self._lock)
        unheld.rename(self.path / LOCK)

    def remove(self) -> None:
        shielded.remove(str(self.path))
        os.close(self._lock)


def remove_forgotten() -> None:
    """Those of processes that were killed."""
    for base in (tempfile.gettempdir(), *ELSEWHERE):
        for lock in Path(base).glob(f"{PREFIX}*/{LOCK}"):
            with contextlib.suppress(OSError):
                _remove_unless_held(lock)


def _remove_unless_held(lock: Path) -> None:
    folder = lock.parent
    if folder.is_symlink() or folder.lstat().st_uid != os.getuid():
        return
    held = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
    try:
        if _is_taken(held):
            shielded.remove(str(folder))
    finally:
        os.close(held)


def _is_taken(lock: int) -> bool:
    """By this process, now. Some network file systems know no locks: there nothing is."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _base(protect: list[str]) -> str:
    usual = tempfile.gettempdir()
    for base in (usual, *ELSEWHERE):
        inside = any(Path(base).resolve().is_relative_to(folder) for folder in protect)
        if not inside and os.access(base, os.W_OK):
            return base
    return usual
