"""What a trial reads from its stdin: what hotloop itself was given there, from its start.

A terminal stays with the user: the trial then has its own, and reads nothing from it. A file is
opened anew for every trial. What comes through a pipe comes once, so it is kept: by a thread that
begins with the first trial and reads whatever comes for as long as any comes. So neither hotloop
nor a script waits for a pipe that nobody writes to or closes, unless that script reads from it.
"""

from __future__ import annotations

import contextlib
import os
import select
import stat
import sys
import threading
from functools import cache
from types import TracebackType
from typing import Self

from hotloop.errors import UsageError

STDIN = 0
MOST_BYTES = 64 << 20
PIECE = 1 << 16
LOOK_SECONDS = 0.5
"""A trial that is over is noticed after so long, where nothing else happens."""


class Kept:
    """All that has come from a pipe so far."""

    def __init__(self, source: int, most: int = MOST_BYTES) -> None:
        self._source = source
        self._most = most
        self._text = bytearray()
        self._more = threading.Condition()
        self._is_over = False
        self.is_too_much = False
        threading.Thread(target=self._read, daemon=True).start()

    def after(self, place: int) -> bytes | None:
        """Some of what follows; nothing when nothing has come for a while; None: that was all."""
        with self._more:
            self._more.wait_for(
                lambda: self._is_over or len(self._text) > place, timeout=LOOK_SECONDS
            )
            piece = bytes(self._text[place : place + PIECE])
            return None if self._is_over and not piece else piece

    def _read(self) -> None:
        while not self._is_over:
            piece = _read_when_ready(self._source)
            with self._more:
                self.is_too_much = len(self._text) + len(piece) > self._most
                self._text += piece[: self._most - len(self._text)]
                self._is_over = not piece or self.is_too_much
                self._more.notify_all()


class Given:
    """To one trial. `childs` is the end that its process gets."""

    def __init__(self, terminal: int) -> None:
        """`terminal`: the process's end of its terminal."""
        self._kept: Kept | None = None
        self._is_over = threading.Event()
        self._is_too_much = False
        self.is_terminal = False
        self.childs = -1
        source = _source()
        if isinstance(source, Kept):
            self._kept = source
            self.childs, self._ours = os.pipe()
        elif source is None:
            self.is_terminal = True
            self.childs = os.dup(terminal)
        else:
            self.childs = source

    def hand_over(self) -> None:
        """Once the process has it: else nobody would notice that it reads no more."""
        os.close(self.childs)
        self.childs = -1
        if self._kept is not None:
            threading.Thread(target=self._pour, args=(self._kept,), daemon=True).start()

    def look(self) -> None:
        """Raises what the trial cannot go on with."""
        if self._is_too_much:
            raise UsageError(
                f"The script reads more than {MOST_BYTES >> 20} MiB from a pipe, which every run "
                "would have to be given again.",
                "Redirect a file to its standard input instead: hotloop … < FILE.",
            )

    def _pour(self, kept: Kept) -> None:
        place = 0
        try:
            os.set_blocking(self._ours, False)
            while not self._is_over.is_set():
                piece = kept.after(place)
                if piece is None:
                    self._is_too_much = kept.is_too_much
                    break
                if piece and select.select([], [self._ours], [], LOOK_SECONDS)[1]:
                    with contextlib.suppress(BlockingIOError):
                        place += os.write(self._ours, piece)
        except OSError:  # nobody reads any more
            pass
        finally:
            if self._is_too_much:  # to the script that would look like the end
                self._is_over.wait()
            os.close(self._ours)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_over.set()
        if self.childs >= 0:  # the process never started
            os.close(self.childs)
            if self._kept is not None:
                os.close(self._ours)


def _source() -> int | Kept | None:
    """None: a terminal. Otherwise a file of the caller's, or what is kept of a pipe."""
    if sys.__stdin__ is None:  # closed, and by now perhaps a file of ours
        return os.open(os.devnull, os.O_RDONLY)
    if os.isatty(STDIN):
        return None
    with contextlib.suppress(OSError):
        mode = os.fstat(STDIN).st_mode
        if stat.S_ISREG(mode) or stat.S_ISCHR(mode):
            return _opened_anew()
    return _kept()


@cache
def _kept() -> Kept:
    """There is one stdin, whoever asks."""
    return Kept(STDIN)


def _opened_anew() -> int:
    """With a place of its own in the file, from where hotloop's own stands."""
    opened = os.open(f"/proc/self/fd/{STDIN}", os.O_RDONLY | os.O_NOCTTY)
    with contextlib.suppress(OSError):  # of a device there is none
        os.lseek(opened, os.lseek(STDIN, 0, os.SEEK_CUR), os.SEEK_SET)
    return opened


def _read_when_ready(source: int) -> bytes:
    """Whoever shares it may have made it one that does not wait."""
    while True:
        try:
            select.select([source], [], [])
            return os.read(source, PIECE)
        except BlockingIOError:
            continue
        except (OSError, ValueError):
            return b""
