"""Lines of Python that run, and which of them are the user's own."""

from __future__ import annotations

import linecache
import os
import site
import sys
import sysconfig
from types import FrameType

from hotloop.inspection import Frame
from hotloop.runtime.tracebacks import OURS

DEEPEST = 80
"""Frames of one stack. What lies further out than that tells nothing."""


class Frames:
    """Numbers for lines, so that each is kept once."""

    def __init__(self) -> None:
        self.known: list[Frame] = []
        self._numbers: dict[tuple[str, int, str], int] = {}
        self._is_users: dict[str, bool] = {}
        self._installed = tuple(_folders())
        self._home = ""

    def stack(self, frame: FrameType | None) -> list[int]:
        """From the outermost line in, without ours."""
        numbers: list[int] = []
        while frame is not None and len(numbers) < DEEPEST:
            if not frame.f_code.co_filename.startswith(OURS):
                numbers.append(self.number(frame))
            frame = frame.f_back
        numbers.reverse()
        return numbers

    def line(self, frame: FrameType | None) -> int | None:
        """The innermost line of the user's own; None where no such line runs."""
        while frame is not None:
            if self.is_users(frame.f_code.co_filename):
                return self.number(frame)
            frame = frame.f_back
        return None

    def number(self, frame: FrameType) -> int:
        code = frame.f_code
        place = code.co_filename, frame.f_lineno or code.co_firstlineno, code.co_qualname
        number = self._numbers.get(place)
        if number is None:
            number = self._numbers[place] = len(self.known)
            file, line, function = place
            text = linecache.getline(file, line).strip()[:200]
            self.known.append(Frame(file, line, function, self.is_users(file), text))
        return number

    def is_users(self, file: str) -> bool:
        known = self._is_users.get(file)
        if known is None:
            known = self._is_users[file] = self._belongs_to_user(file)
        return known

    def _belongs_to_user(self, file: str) -> bool:
        """What lies beside the script is the user's, even where that was installed."""
        if file.startswith(("<", OURS)):
            return False
        path = os.path.abspath(file)
        return path.startswith(self._beside_the_script()) or not path.startswith(self._installed)

    def _beside_the_script(self) -> str:
        if not self._home:
            main = getattr(sys.modules.get("__main__"), "__file__", None)
            self._home = os.path.dirname(os.path.abspath(main)) + os.sep if main else os.devnull
        return self._home


def _folders() -> set[str]:
    """Where Python and what was installed into it lie. An environment may lie in the project."""
    paths = [*sysconfig.get_paths().values(), sys.base_prefix, sys.prefix]
    paths += [*site.getsitepackages(), site.getusersitepackages()]
    torch = sys.modules.get("torch")
    if torch is not None and torch.__file__:
        paths.append(os.path.dirname(os.path.dirname(torch.__file__)))
    return {os.path.abspath(path) + os.sep for path in paths if len(path) > 1}
