"""An audit hook that refuses, or at least notes, what the rest of the shield did not catch.

Python announces every file it opens and most of what `os` does, whichever way a call came. What
arrives here with a path of the user's was not redirected. A file that exists is not given away:
the call is refused. A new one is let through, and noted.
"""

from __future__ import annotations

import errno
import os
import posix
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hotloop.runtime.shield.paths import descriptor_path, join, link_text, resolve, status
from hotloop.runtime.shield.territory import Territory

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

# Event to the positions of each path it changes and, where it has one, of the folder's descriptor.
# See the audit events table of Python's documentation.
CHANGES: dict[str, tuple[tuple[int, int | None], ...]] = {
    "os.chflags": ((0, None),),
    "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),),
    "os.link": ((1, 3),),
    "os.mkdir": ((0, 2),),
    "os.remove": ((0, 1),),
    "os.removexattr": ((0, None),),
    "os.rename": ((0, 2), (1, 3)),
    "os.rmdir": ((0, 1),),
    "os.setxattr": ((0, None),),
    "os.symlink": ((1, 2),),
    "os.truncate": ((0, None),),
    "os.utime": ((0, 3),),
}
NOT_FOLLOWING_LINKS = ("os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink")
STARTS = ("os.exec", "os.posix_spawn", "os.system", "subprocess.Popen")


class Guard:
    def __init__(self, territory: Territory, scratch: str, tells_of_programs: bool = True) -> None:
        self._territory = territory
        self._file = join(scratch, "unshielded.txt")
        self._noted: set[str] = set()
        self._expected = threading.local()
        self._checks: dict[str, Callable[[str, tuple[Any, ...]], None]] = {
            "open": self._opening,
            **dict.fromkeys(CHANGES, self._changing),
            **(dict.fromkeys(STARTS, self._starting) if tells_of_programs else {}),
        }

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        check = self._checks.get(event)
        if check is not None:
            check(event, arguments)

    @contextmanager
    def expecting(self, path: Any) -> Iterator[None]:
        """An opener will open something else instead of `path`; Python announces `path`."""
        self._expected.path = path
        try:
            yield
        finally:
            self._expected.path = None

    def notes(self) -> list[str]:
        """Of all processes of the trial."""
        try:
            descriptor = posix.open(self._file, os.O_RDONLY)
        except FileNotFoundError:
            return []
        with open(descriptor, encoding="utf-8") as file:
            return list(dict.fromkeys(file.read().splitlines()))

    def _opening(self, event: str, arguments: tuple[Any, ...]) -> None:
        path, _, flags = arguments
        if not flags & WRITES or path is getattr(self._expected, "path", None):
            return
        user = self._users(path)
        if user is not None:
            found = status(user)
            if found is None:
                self._note(f"wrote {user}")
            elif stat.S_ISREG(found.st_mode):  # not a pipe, a device or a folder
                self._refuse(user)

    def _changing(self, event: str, arguments: tuple[Any, ...]) -> None:
        follow = event not in NOT_FOLLOWING_LINKS
        for position, folder in CHANGES[event]:
            start = -1 if folder is None else arguments[folder]
            user = self._users(arguments[position], start, follow)
            if user is None:
                continue
            if status(user) is not None:
                self._refuse(user)
            self._note(f"wrote {user}")

    def _starting(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Another program writes where it likes. One note for each program, with its first call."""
        given = arguments[0] if event == "os.system" else arguments[1]
        words = [given] if isinstance(given, str | bytes | os.PathLike) else given
        command = " ".join(os.fsdecode(word) for word in words)
        self._note(f"ran {command[:200]}", once_for=command.partition(" ")[0])

    def _users(self, path: Any, folder: int = -1, follow: bool = True) -> str | None:
        """The path an announced one comes to, if it is the user's."""
        if isinstance(path, int):
            absolute = descriptor_path(path)
        else:
            text = os.fsdecode(path)
            start = posix.getcwd() if folder == -1 else descriptor_path(folder) or "/"
            absolute = text if text.startswith("/") else join(start, text)
        if absolute is None:
            return None
        user = resolve(absolute, link_text, follow)
        return user if self._territory.shields(user) else None

    def _refuse(self, user: str) -> None:
        self._note(f"was kept from changing {user}")
        text = "hotloop keeps this file as it is during a trial, and could not redirect this call"
        raise PermissionError(errno.EPERM, text, user)

    def _note(self, text: str, once_for: str | None = None) -> None:
        """In a file, for this process may be killed, and may be one of many."""
        topic = once_for or text
        if topic in self._noted:
            return
        self._noted.add(topic)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        descriptor = posix.open(self._file, flags, 0o666)
        posix.write(descriptor, f"{' '.join(text.split())}\n".encode(errors="replace"))
        posix.close(descriptor)
