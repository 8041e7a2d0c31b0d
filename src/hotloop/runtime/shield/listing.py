"""Folders that lie in the mirror and below it at once, listed as one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from types import TracebackType
from typing import Any


class Entry:
    """What `os.DirEntry` is, which Python code cannot make."""

    __slots__ = ("_user", "name", "path")

    def __init__(self, name: str | bytes, path: str | bytes, user: str) -> None:
        self.name = name
        self.path = path
        self._user = user

    def __fspath__(self) -> str | bytes:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"

    # `os.stat` is the shield's own by now: it looks where the entry is.

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return os.stat(self._user, follow_symlinks=follow_symlinks)

    def inode(self) -> int:
        return self.stat(follow_symlinks=False).st_ino

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return stat.S_ISDIR(self._mode(follow_symlinks))

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return stat.S_ISREG(self._mode(follow_symlinks))

    def is_symlink(self) -> bool:
        return stat.S_ISLNK(self._mode(False))

    def is_junction(self) -> bool:
        return False

    def _mode(self, follow: bool) -> int:
        try:
            return self.stat(follow_symlinks=follow).st_mode
        except FileNotFoundError:
            return 0


class Scan:
    """What `os.scandir` returns."""

    def __init__(self, folder: str | bytes | None, user: str, names: list[str]) -> None:
        """`folder` is what the entries' paths begin with, as the script gave it."""
        self._entries = (self._entry(folder, user, name) for name in names)

    @staticmethod
    def _entry(folder: str | bytes | None, user: str, name: str) -> Entry:
        where = os.path.join(user, name)
        if isinstance(folder, bytes):
            return Entry(os.fsencode(name), os.path.join(folder, os.fsencode(name)), where)
        return Entry(name, name if folder is None else os.path.join(folder, name), where)

    def __iter__(self) -> Iterator[Entry]:
        return self

    def __next__(self) -> Entry:
        return next(self._entries)

    def __enter__(self) -> Scan:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._entries.close()
