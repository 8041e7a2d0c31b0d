"""The pseudo-terminal a trial runs on: to the script it looks like the user's own shell."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import struct
import termios
from pathlib import Path
from types import TracebackType
from typing import Self

# Colours, cursor movements and titles; then what else a terminal would act on.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Marks that reorder or hide text around them: a name could pass itself off as another.
_INVISIBLE = re.compile("[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff]")


class Terminal:
    """Its user end goes to the child; what the child prints is kept in a log."""

    def __init__(self, log: Path) -> None:
        self._ours, self.childs = pty.openpty()
        size = shutil.get_terminal_size()
        packed = struct.pack("HHHH", size.lines, size.columns, 0, 0)
        fcntl.ioctl(self.childs, termios.TIOCSWINSZ, packed)
        self._log = log.open("wb")
        self._held = b""
        """Half of an end of line: a read may stop in the middle of one."""
        self._open = True

    def hand_over(self) -> None:
        """Once the child has it: else its end would never be seen."""
        os.close(self.childs)

    def read(self, timeout: float) -> bytes:
        """What was printed, at most after `timeout`; empty when nothing was or all is over."""
        if not self._open:
            return b""
        ready, _, _ = select.select([self._ours], [], [], timeout)
        if not ready:
            return b""
        try:
            text = os.read(self._ours, 65536)
        except OSError:  # Linux says EIO when nobody holds the other end any more
            text = b""
        if not text:
            self._open = False
        self._keep(text)
        return text

    @property
    def is_open(self) -> bool:
        return self._open

    def _keep(self, text: bytes) -> None:
        whole = self._held + text
        self._held = b"\r" if text and whole.endswith(b"\r") else b""
        whole = whole.removesuffix(self._held).replace(b"\r\n", b"\n")
        # A full disk must not end the trial; the study, which follows, says so clearly.
        with contextlib.suppress(OSError):
            self._log.write(whole)
            self._log.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        while self._open and self.read(0):
            pass
        self._keep(b"")
        os.close(self._ours)
        with contextlib.suppress(OSError):
            self._log.close()


def harmless(text: str) -> str:
    """Text of the script's, safe to print: it can neither colour, move nor reprogram a terminal.

    Nor can it look like what it is not.
    """
    plain = _CONTROLS.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n")))
    plain = _INVISIBLE.sub("", plain)
    return plain.encode("utf-8", "replace").decode()  # a file name need not be text
