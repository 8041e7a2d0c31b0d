"""A trial's own folder beside everything of the user's, which is gone when the trial is over.

Whoever is killed outright cannot remove it, and it holds the environment of the user, secrets
included; nor can it end what the script has started in sessions of its own. So the folder is held
by a lock, which the kernel lets go of, and the next one to come makes up for both.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import tempfile
import uuid
from pathlib import Path

from hotloop.trial.reaping import kill_marked
from hotloop.trial.removing import remove

PREFIX = "hotloop-"
NAME = re.compile(r"hotloop-\w{8}")
LOCK, SECRETS = "held", "enter.json"
ELSEWHERE = ("/var/tmp", "/dev/shm")


class Scratch:
    def __init__(self, protect: list[str]) -> None:
        """`protect`: the user's folders, in none of which it may lie if there is any other."""
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_base(protect)))
        unheld = self.path / f"{LOCK}.new"  # by that name nobody takes it for a forgotten one
        self._lock = os.open(unheld, os.O_RDWR | os.O_CREAT, 0o600)
        self.mark = uuid.uuid4().hex
        """Which every process of the trial bears."""
        os.write(self._lock, f"{_sign()}{self.mark}".encode())
        _is_taken(self._lock)
        unheld.rename(self.path / LOCK)

    def remove(self) -> None:
        try:
            _empty(self.path)
        finally:
            os.close(self._lock)


def remove_forgotten() -> None:
    """Those of processes that were killed."""
    for base in (tempfile.gettempdir(), *ELSEWHERE):
        with contextlib.suppress(OSError), os.scandir(base) as entries:
            for folder in [Path(entry.path) for entry in entries if NAME.fullmatch(entry.name)]:
                with contextlib.suppress(OSError, ValueError):
                    _remove_if_forgotten(folder)


def _remove_if_forgotten(folder: Path) -> None:
    status = folder.lstat()
    if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
        return
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        sign, mark = os.pread(lock, 1000, 0).decode(errors="replace").rsplit(None, 1)
        if sign == _sign().rstrip() and _is_taken(lock):
            kill_marked(mark)
            _empty(folder)
    finally:
        os.close(lock)


def _empty(folder: Path) -> None:
    """The secrets first, and last the lock: by it the next one finds what could not be removed."""
    names = [name for name in os.listdir(folder) if name not in (SECRETS, LOCK)]
    for name in (SECRETS, *names):
        remove(str(folder / name))
    if os.listdir(folder) == [LOCK]:
        (folder / LOCK).unlink()
        folder.rmdir()


def _sign() -> str:
    """That it is one, and whose: machines may share a folder, but not its locks."""
    return f"hotloop's scratch space on {os.uname().nodename}\n"


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
