"""Python's `open` gives the copy of a file where there is one and it is only to be read.

A path is compared as it is written, made absolute: the store is not asked for anything. What the
job writes to, renames or deletes is its own from then on, in all of its processes: which files are,
and how often each was read, is kept in memory that forked processes share.
"""

from __future__ import annotations

import builtins
import functools
import io
import mmap
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGING = ("remove", "rename", "replace", "truncate", "unlink")
"""Functions of `os` after which a path holds something else."""

Call = Callable[..., Any]


class _Shared:
    """Two numbers for each file, that processes forked later see and change as well.

    Two that count the same file in the same instant may count one read: this is evidence, not a
    measurement.
    """

    def __init__(self, count: int) -> None:
        self.reads = memoryview(mmap.mmap(-1, 4 * count)).cast("I")
        self.changed = mmap.mmap(-1, count)


@dataclass(frozen=True, slots=True)
class _Copy:
    path: str
    shared: _Shared
    number: int


class Redirection:
    def __init__(self) -> None:
        self._copies: dict[str, _Copy] = {}
        self._shared: list[_Shared] = []
        self._put: list[tuple[Any, str, Call, Call]] = []

    @property
    def reads(self) -> int:
        return sum(sum(shared.reads) for shared in self._shared)

    def add(self, copies: Mapping[str, str]) -> None:
        """Processes that were forked before know nothing of these."""
        shared = _Shared(len(copies))
        self._shared.append(shared)
        for number, (path, copy) in enumerate(copies.items()):
            self._copies[path] = _Copy(copy, shared, number)
        if not self._put:
            self._install()

    def end(self) -> None:
        """All files are the originals again. What was counted is still known."""
        self._copies.clear()
        for owner, name, plain, ours in self._put:
            if getattr(owner, name) is ours:  # else somebody has wrapped it, and may keep it
                setattr(owner, name, plain)
        self._put.clear()

    def _install(self) -> None:
        opening = self._opening(builtins.open)
        for owner in (builtins, io):
            self._replace(owner, "open", opening)
        self._replace(os, "open", self._opening_descriptor(os.open))
        for name in CHANGING:
            self._replace(os, name, self._changing(getattr(os, name)))

    def _replace(self, owner: Any, name: str, ours: Call) -> None:
        self._put.append((owner, name, getattr(owner, name), ours))
        setattr(owner, name, ours)

    def _opening(self, plain: Call) -> Call:
        plain_descriptor = os.open

        @functools.wraps(plain)
        def open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            writes = not isinstance(mode, str) or any(letter in mode for letter in "wax+")
            copy = self._copy(file, writes)
            if copy is None or len(args) > 5 or kwargs.get("opener") is not None:
                return plain(file, mode, *args, **kwargs)

            # By way of an opener, so that the file's name stays what the script gave.
            def opener(path: Any, flags: int) -> int:
                return self._descriptor(copy, plain_descriptor, path, flags)

            return plain(file, mode, *args, **{**kwargs, "opener": opener})

        open.__module__ = "builtins"  # by which it is pickled
        return open

    def _opening_descriptor(self, plain: Call) -> Call:
        @functools.wraps(plain)
        def open(path: Any, flags: int, *args: Any, **kwargs: Any) -> Any:
            copy = None if kwargs.get("dir_fd") is not None else self._copy(path, flags & WRITES)
            if copy is None:
                return plain(path, flags, *args, **kwargs)
            return self._descriptor(copy, plain, path, flags)

        open.__module__ = "os"
        return open

    def _changing(self, plain: Call) -> Call:
        @functools.wraps(plain)
        def change(*paths: Any, **kwargs: Any) -> Any:
            for path in (*paths, *kwargs.values()):
                self._copy(path, writes=True)
            return plain(*paths, **kwargs)

        change.__module__ = "os"
        return change

    def _copy(self, path: Any, writes: bool | int) -> _Copy | None:
        """Where to read a path instead. None: the original, from now on if it is written to."""
        if not isinstance(path, str | bytes | os.PathLike):
            return None
        try:
            copy = self._copies.get(os.path.abspath(os.fsdecode(path)))
        except (OSError, TypeError, ValueError):  # whoever opens it says what is wrong
            return None
        if copy is None or copy.shared.changed[copy.number]:
            return None
        if writes:
            copy.shared.changed[copy.number] = 1
            return None
        return copy

    def _descriptor(self, copy: _Copy, plain: Call, path: Any, flags: int) -> int:
        try:
            found: int = plain(copy.path, flags)
        except OSError:  # the folder went with the process that made it, and this one lives on
            return int(plain(path, flags))
        copy.shared.reads[copy.number] += 1
        return found
