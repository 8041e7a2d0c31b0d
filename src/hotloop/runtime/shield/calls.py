"""Stand-ins for `open` and the functions of `os` that take paths.

The rest of the standard library is built on them: `os.path`, `os.makedirs`, `os.walk`, `pathlib`,
`shutil`, `glob`, `tempfile`, `zipfile`, `logging`; and so are the libraries that save by Python.
"""

from __future__ import annotations

import _io
import errno
import functools
import os
import posix
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from hotloop.runtime.shield.changes import Changes
from hotloop.runtime.shield.guard import WRITES, Guard
from hotloop.runtime.shield.listing import Scan
from hotloop.runtime.shield.paths import Path, descriptor_path, fail, join
from hotloop.runtime.shield.standins import Call, StandIn, put_everywhere
from hotloop.runtime.shield.view import Spot, View

# Functions of `posix` by what they do with their first argument. Not all systems have all of them.
READING = ("access", "chdir", "getxattr", "listxattr", "pathconf", "stat", "statvfs")
READING_A_LINK = ("lstat", "readlink")
ALTERING = ("chflags", "chmod", "chown", "removexattr", "setxattr", "truncate", "utime")
ALTERING_A_LINK = ("lchflags", "lchmod", "lchown")
CREATING = ("mkfifo", "mknod")

MODES = {
    "r": os.O_RDONLY,
    "w": os.O_RDWR | os.O_CREAT | os.O_TRUNC,
    "a": os.O_RDWR | os.O_CREAT | os.O_APPEND,
    "x": os.O_RDWR | os.O_CREAT | os.O_EXCL,
}


class Calls:
    """Its methods have the signatures of what they stand in for."""

    def __init__(self, view: View, changes: Changes, guard: Guard) -> None:
        self._view = view
        self._changes = changes
        self._guard = guard

    def install(self) -> None:
        stand_ins = {real: StandIn(call, real, "os") for real, call in self._in_os()}
        stand_ins[_io.open] = StandIn(self.open, _io.open, "builtins")
        put_everywhere(stand_ins)

    def _in_os(self) -> Iterator[tuple[Call, Call]]:
        """Each function of `posix`, and what to call instead."""
        view, changes = self._view, self._changes
        for names, place, follow in (
            (READING, view.reading, True),
            (READING_A_LINK, view.reading, False),
            (ALTERING, changes.altering, True),
            (ALTERING_A_LINK, changes.altering, False),
            (CREATING, changes.creating, False),
        ):
            for real in (getattr(posix, name) for name in names if hasattr(posix, name)):
                yield real, self._placed(real, place, follow)
        yield posix.open, self.os_open
        yield posix.listdir, self.listdir
        yield posix.scandir, self.scandir
        yield posix.getcwd, view.cwd
        yield posix.getcwdb, lambda: os.fsencode(view.cwd())
        yield posix.mkdir, self.mkdir
        yield posix.rmdir, self.rmdir
        yield posix.symlink, self.symlink
        yield posix.link, self.link
        for real in (posix.unlink, posix.remove):
            yield real, self.remove
        for real in (posix.rename, posix.replace):
            yield real, self.rename

    # -- opening

    def open(
        self,
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Call | None = None,
    ) -> IO[Any]:
        how = (mode, buffering, encoding, errors, newline, closefd)
        if isinstance(file, int):
            return _io.open(file, *how, opener)
        file = os.fspath(file)
        flags = _flags(mode)
        if opener is None:
            place = self._opening(file, flags)
            if place is file:
                return _io.open(file, *how)
            # By way of an opener, so that the file's name stays what the script gave.
            opener = functools.partial(_open_instead, place)
        if not flags:
            return _io.open(file, *how, opener)
        with self._guard.expecting(file):
            return _io.open(file, *how, opener)

    def os_open(
        self, path: Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None
    ) -> int:
        return _open_instead(self._opening(self._at(path, dir_fd), flags), path, flags, mode)

    def _opening(self, path: Path, flags: int) -> Path:
        try:
            writes = flags & WRITES
            return self._changes.writing(path, flags) if writes else self._view.reading(path)
        except OSError as error:
            _name(error, path)
            raise

    # -- listing

    def listdir(self, path: Any = None) -> list[Any]:
        path = "." if path is None else path
        spot = self._unlike_original(path)
        if spot is None:
            return posix.listdir(path)
        names = self._names(spot, path)
        as_bytes = not isinstance(path, int) and isinstance(os.fspath(path), bytes)
        return [os.fsencode(name) for name in names] if as_bytes else names

    def scandir(self, path: Any = None) -> Any:
        path = "." if path is None else path
        spot = self._unlike_original(path)
        if spot is None:
            return posix.scandir(path)
        given = None if isinstance(path, int) else os.fspath(path)
        return Scan(given, spot.user, self._names(spot, path))

    def _unlike_original(self, folder: Path | int) -> Spot | None:
        """How things stand with a folder, unless just listing it shows that."""
        if self._view.is_untouched:
            return None
        if isinstance(folder, int):
            path = descriptor_path(folder)
            spot = self._view.spot(self._view.mirror.back(path)) if path else None
            return spot if spot and spot.kept else None
        spot = self._view.spot(folder)
        is_like = spot.kept is None and self._view.reading(folder) is folder
        return None if is_like else spot

    def _names(self, spot: Spot, path: Any) -> list[str]:
        with _naming(path):
            return self._view.names(spot)

    # -- changing

    def mkdir(self, path: Path, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        with _naming(path):
            self._changes.mkdir(self._at(path, dir_fd), mode)

    def rmdir(self, path: Path, *, dir_fd: int | None = None) -> None:
        with _naming(path):
            self._changes.rmdir(self._at(path, dir_fd))

    def remove(self, path: Path, *, dir_fd: int | None = None) -> None:
        with _naming(path):
            self._changes.remove(self._at(path, dir_fd))

    def rename(
        self,
        src: Path,
        dst: Path,
        *,
        src_dir_fd: int | None = None,
        dst_dir_fd: int | None = None,
    ) -> None:
        with _naming(src, dst):
            self._changes.rename(self._at(src, src_dir_fd), self._at(dst, dst_dir_fd))

    def link(
        self,
        src: Path,
        dst: Path,
        *,
        src_dir_fd: int | None = None,
        dst_dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> None:
        with _naming(src, dst):
            self._changes.link(self._at(src, src_dir_fd), self._at(dst, dst_dir_fd))

    def symlink(
        self,
        src: Path,
        dst: Path,
        target_is_directory: bool = False,
        *,
        dir_fd: int | None = None,
    ) -> None:
        with _naming(src, dst):
            self._changes.symlink(src, self._at(dst, dir_fd))

    # -- all others

    def _placed(self, real: Call, place: Call, follow: bool) -> Call:
        """`real`, called with another path than the script gave."""

        def call(
            path: Any,
            *args: Any,
            dir_fd: int | None = None,
            follow_symlinks: bool = True,
            **more: Any,
        ) -> Any:
            if not follow_symlinks:
                more["follow_symlinks"] = False
            if isinstance(path, int):
                return real(path, *args, **more)
            try:
                where = place(self._at(path, dir_fd), follow and follow_symlinks)
                return real(where, *args, **more)
            except OSError as error:
                _name(error, path)
                raise

        return call

    def _at(self, path: Path, folder: int | None) -> Path:
        """A path that was given relative to an open folder, by itself."""
        if folder is None:
            return path
        text = os.fsdecode(path)
        where = descriptor_path(folder)
        if where is None:
            fail(errno.ENOTDIR)
        return text if text.startswith("/") else join(self._view.mirror.back(where), text)


def _open_instead(place: Path, path: Path, flags: int, mode: int = 0o666) -> int:
    try:
        return posix.open(place, flags, mode)
    except OSError as error:
        _name(error, path)
        raise


@contextmanager
def _naming(*paths: Any) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        _name(error, *paths)
        raise


def _name(error: OSError, path: Any, second: Path | None = None) -> None:
    """Let the error speak of the paths that the script gave."""
    error.filename = path if isinstance(path, int) else os.fspath(path)
    if second is not None:
        error.filename2 = os.fspath(second)


@functools.cache
def _flags(mode: str) -> int:
    """Zero for reading alone."""
    kind = next((letter for letter in mode if letter in MODES), "r")
    return MODES[kind] | (os.O_RDWR if "+" in mode else 0)
