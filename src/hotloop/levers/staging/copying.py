"""Copies of files on a RAM disk: all of them, in time and within their share of memory, or none."""

from __future__ import annotations

import mmap
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hotloop.levers.caching import host_memory
from hotloop.levers.caching.kept_items import Unfit
from hotloop.levers.staging.threads import in_threads, keep_to

CHUNK = 2**22
"""Bytes, after which the time is looked at."""
IN_MEMORY = ("tmpfs", "ramfs")
MOUNTS = Path("/proc/self/mountinfo")


@dataclass(frozen=True)
class Copied:
    copies: dict[str, str]
    """Where each file's copy lies. One that changed meanwhile, or cannot be read, has none."""
    bytes: int


def to_copy(
    files: Mapping[str, os.stat_result], ram_disk: str, memory_share: float
) -> dict[str, os.stat_result]:
    """Those that are not in memory as it is. Raises Unfit where there are none, or too much."""
    kept_there = in_memory()
    slow = {path: known for path, known in files.items() if known.st_dev not in kept_there}
    if not slow:
        raise Unfit(
            "the dataset's files lie in memory already" if files else "the dataset names no files"
        )
    page = mmap.PAGESIZE  # a RAM disk gives out whole ones
    size = sum(-(-known.st_size // page) * page for known in slow.values())
    may = memory_share * min(shutil.disk_usage(ram_disk).free, host_memory.available() or 0)
    if size > may:
        raise Unfit(
            f"the dataset's files would take {_mib(size)} of memory, and may take {_mib(may)}"
        )
    return slow


def copy_all(files: Mapping[str, os.stat_result], folder: str, deadline: float) -> Copied:
    """Into a new folder. Raises Unfit, and leaves none, where that does not work out."""

    def copied(path: str) -> tuple[str, str] | None:
        copy = f"{folder}{path}"
        return (path, copy) if _copy(path, files[path], copy, deadline) else None

    try:
        copies = dict(filter(None, in_threads(copied, list(files), deadline)))
        if not copies:
            raise Unfit("none of the dataset's files could be copied")
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise Unfit(f"the dataset's files could not be copied ({type(error).__name__})") from None
    except BaseException:  # Ctrl-C as well
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Copied(copies, sum(files[path].st_size for path in copies))


def _mib(size: float) -> str:
    return f"{size / 2**20:,.0f} MiB"


def _copy(path: str, known: os.stat_result, copy: str, deadline: float) -> bool:
    """Whether it is the same file as before. Trouble with the original is the job's to meet."""
    os.makedirs(os.path.dirname(copy), exist_ok=True)
    try:
        source = open(path, "rb", buffering=0)  # noqa: SIM115
    except OSError:
        return False
    with source, open(copy, "wb", buffering=0) as sink:
        while chunk := source.read(CHUNK):
            sink.write(chunk)
            keep_to(deadline)
        now = os.fstat(source.fileno())
    os.utime(copy, ns=(known.st_atime_ns, known.st_mtime_ns))
    if (now.st_size, now.st_mtime_ns) == (known.st_size, known.st_mtime_ns):
        return os.path.getsize(copy) == known.st_size
    os.remove(copy)
    return False


def in_memory() -> set[int]:
    """Devices whose files are in memory as it is."""
    found = set()
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        mount, _, kind = line.partition(" - ")
        if kind.split(" ")[0] in IN_MEMORY:
            major, _, minor = mount.split(" ")[2].partition(":")
            found.add(os.makedev(int(major), int(minor)))
    return found
