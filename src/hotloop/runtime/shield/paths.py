"""Plain functions on paths, under all the rest.

`posix` and `_io` are what `os` and `io` are made of. The shield speaks to them directly, because it
is the functions of `os` and `io` that it replaces.
"""

from __future__ import annotations

import errno
import fcntl
import os
import posix
import stat
import sys
from collections.abc import Callable
from typing import NoReturn, TypeAlias

Path: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]

MOST_LINKS = 40  # as in Linux


def fail(number: int) -> NoReturn:
    """Raise what the system would raise, without the path yet; OSError picks its own subclass."""
    raise OSError(number, os.strerror(number))


def status(path: str) -> os.stat_result | None:
    """What lies at `path` itself, were it a link."""
    try:
        return posix.lstat(path)
    except OSError:
        return None


def is_folder(path: str) -> bool:
    found = status(path)
    return found is not None and stat.S_ISDIR(found.st_mode)


def is_link(path: str) -> bool:
    try:
        return stat.S_ISLNK(posix.lstat(path).st_mode)
    except OSError:
        return False


def erase(path: str) -> None:
    """A file or a whole tree. Not `shutil.rmtree`, which would go through the script's view."""
    if not is_folder(path):
        return posix.unlink(path)
    for name in posix.listdir(path):
        erase(join(path, name))
    posix.rmdir(path)


def link_text(path: str) -> str | None:
    try:
        return posix.readlink(path)
    except OSError:
        return None


def join(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}"


def parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def resolve(path: str, link: Callable[[str], str | None], follow_last: bool = True) -> str:
    """The absolute `path` without dots and links. `link` gives the text of one, None for others."""
    rest = path.split("/")[::-1]
    resolved = ""
    links = 0
    while rest:
        part = rest.pop()
        if part in ("", "."):
            continue
        if part == "..":
            resolved = resolved.rpartition("/")[0]
            continue
        here = f"{resolved}/{part}"
        text = link(here) if rest or follow_last else None
        if text is None:
            resolved = here
            continue
        links += 1
        if links > MOST_LINKS:
            fail(errno.ELOOP)
        if text.startswith("/"):
            resolved = ""
        rest += text.split("/")[::-1]
    return resolved or "/"


def descriptor_path(descriptor: int) -> str | None:
    """The path of what is open there; None for a pipe, a socket and the like."""
    if sys.platform == "darwin":
        buffer = fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024))
        path = os.fsdecode(buffer.partition(b"\0")[0])
    else:
        path = link_text(f"/proc/self/fd/{descriptor}") or ""
    return path if path.startswith("/") else None
