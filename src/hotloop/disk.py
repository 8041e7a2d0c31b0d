"""How fast a folder's files come from its disk, to one reader, as they come to a loader's worker.

Read as they lie there, small files among large, so that what it costs to open one counts. Files
that are in the page cache are taken out of it first (and are in it again after that): a second
epoch would otherwise be mistaken for the disk. What does not leave the cache is not counted.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass

ENOUGH_BYTES = 2**28
ENOUGH_SECONDS = 1.0
LEAST_BYTES = 2**22
"""Less comes in one breath, and says nothing of a disk."""
MOST_FILES = 20_000
"""That are looked at: a dataset may hold millions."""
BLOCK = 2**20


@dataclass(frozen=True)
class DiskRead:
    path: str
    files: int = 0
    size: int = 0
    """Bytes that came from the disk."""
    rate: float | None = None
    """Bytes/s. None: too little of the folder could be read past the page cache."""


def read(path: str) -> DiskRead:
    files = size = 0
    seconds, began = 0.0, time.perf_counter()
    for name in _regular_files(path):
        start = time.perf_counter()
        got = _read_past_the_cache(name, ENOUGH_BYTES - size)
        if got:
            files, size, seconds = files + 1, size + got, seconds + time.perf_counter() - start
        if size >= ENOUGH_BYTES or time.perf_counter() - began > ENOUGH_SECONDS:
            break
    known = size >= LEAST_BYTES and seconds > 0
    return DiskRead(path, files, size, size / seconds if known else None)


def _regular_files(path: str) -> Iterator[str]:
    if os.path.isfile(path):
        yield path
    looked_at = 0
    for folder, inner, names in os.walk(path):
        inner[:] = sorted(name for name in inner if not name.startswith("."))  # no dataset's
        for name in names:
            looked_at += 1
            if looked_at > MOST_FILES:
                return
            yield os.path.join(folder, name)


def _read_past_the_cache(name: str, most: int) -> int:
    """The bytes that came from the disk: none of what is no file, closed to us, or empty."""
    try:
        file = os.open(name, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would wait for its writer
    except OSError:
        return 0
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode) or not _forgotten(file):
            return 0
        got = 0
        began = time.perf_counter()
        while got < most and time.perf_counter() - began < ENOUGH_SECONDS:
            block = os.read(file, BLOCK)
            got += len(block)
            if not block:
                break
        return got
    except OSError:
        return 0
    finally:
        os.close(file)


def _forgotten(file: int) -> bool:
    """Whether its beginning is out of the page cache now. Where that cannot be asked: presumed."""
    if not hasattr(os, "posix_fadvise"):
        return False
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    try:
        return os.preadv(file, [bytearray(1)], 0, os.RWF_NOWAIT) == 0
    except BlockingIOError:
        return True  # it would have to come from the disk
    except (OSError, AttributeError):
        return True
