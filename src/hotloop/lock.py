"""One hotloop at a time in a folder: two would measure each other, and mix up their studies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hotloop.errors import FolderBusy, StudyNotWritable
from hotloop.study import make_base


@contextmanager
def held(base: Path) -> Iterator[None]:
    """Holds the folder of studies, which is made if need be.

    The kernel lets go of it however this process ends. Processes started meanwhile do not inherit
    it: Python opens files that way.
    """
    try:
        lock = _open(base)
    except OSError as error:
        raise StudyNotWritable(
            f"No study can be kept in {base}: {error.strerror}.",
            "Free some space, or name another folder with --study.",
        ) from None
    try:
        _take(lock, base)
        yield
    finally:
        os.close(lock)


def _open(base: Path) -> int:
    make_base(base)
    return os.open(base / "lock", os.O_RDWR | os.O_CREAT, 0o644)


def _take(lock: int, base: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise FolderBusy(
            f"Another hotloop{_holder(lock)} is at work in {base}.",
            "Wait for it, or name another folder with --study.",
        ) from None
    except OSError:
        return  # some network file systems know no locks; that is no reason not to work there
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)


def _holder(lock: int) -> str:
    told = os.pread(lock, 32, 0)
    return f" (process {int(told)})" if told.isdigit() else ""
