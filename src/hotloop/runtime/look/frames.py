"""Lines of Python that run, and which of them are the user's own."""

from __future__ import annotations

import linecache
import os
import site
import sys
import sysconfig
from types import CodeType, FrameType

from hotloop.inspection import PACKAGES, Frame
from hotloop.runtime.temporary import kept_apart
from hotloop.runtime.tracebacks import OURS

CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
"""Of what compilers write: Python of nobody's, by names that change with every letter of it."""

DEEPEST = 80
"""Frames of one stack. What lies further out than that tells nothing."""
OF_OURS = 20
"""That may lie between them, and are left out."""
PROBES = tuple(os.path.join(OURS, "runtime", name) + os.sep for name in ("look", "probes"))
STANDARD_LIBRARY = sysconfig.get_path("stdlib") + os.sep


Places = list[tuple[CodeType, int]]
"""Which code runs and how far it is, from the innermost out."""


def places(frame: FrameType | None) -> Places:
    """In as little time as can be: of another thread, whose frames change as it goes on."""
    found: Places = []
    while frame is not None and len(found) < DEEPEST + OF_OURS:
        found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return found


def is_of_ours(found: Places) -> bool:
    """Whether a probe is at work: it runs itself, or what it calls of the standard library.

    Its own lines are on no stack, and what it does would be told of the script's line around it.
    What passes through a probe of loading is the script's.
    """
    for number, (code, _) in enumerate(found):
        if code.co_filename.startswith(PROBES):
            return not number or _is_pythons(found[number - 1][0].co_filename)
    return False


def _is_pythons(file: str) -> bool:
    return file.startswith(STANDARD_LIBRARY) and not any(one in file for one in PACKAGES)


class Frames:
    """Numbers for lines, so that each is kept once."""

    def __init__(self) -> None:
        self.known: list[Frame] = []
        self._numbers: dict[tuple[str, int, str], int] = {}
        self._numbered: dict[tuple[int, int], tuple[int, CodeType]] = {}
        """By where a code object lies and how far it is: to hash one takes long. They are held, so
        that no other comes to lie there."""
        self._is_users: dict[str, bool] = {}
        self._installed = tuple(_folders())
        self._generated = tuple(_generated())
        self._home = ""

    def stack(self, frame: FrameType | None) -> list[int]:
        """From the outermost line in, without ours."""
        return self.numbered(places(frame))

    def numbered(self, found: Places) -> list[int]:
        numbers = [
            self._at(code, reached)
            for code, reached in found
            if not code.co_filename.startswith(OURS)
        ]
        return numbers[:DEEPEST][::-1]

    def line(self, frame: FrameType | None) -> int | None:
        """The innermost line of the user's own; None where no such line runs."""
        while frame is not None:
            if self.is_users(frame.f_code.co_filename):
                return self.number(frame)
            frame = frame.f_back
        return None

    def number(self, frame: FrameType) -> int:
        return self._number(frame.f_code, frame.f_lineno)

    def _at(self, code: CodeType, reached: int) -> int:
        known = self._numbered.get((id(code), reached))
        if known is None:
            spans = (line for begin, end, line in code.co_lines() if begin <= reached < end)
            known = self._number(code, next(spans, None)), code
            self._numbered[id(code), reached] = known
        return known[0]

    def _number(self, code: CodeType, line: int | None) -> int:
        place = code.co_filename, line or code.co_firstlineno, code.co_qualname
        number = self._numbers.get(place)
        if number is None:
            number = self._numbers[place] = len(self.known)
            file, at, function = place
            text = linecache.getline(file, at).strip()[:200]
            self.known.append(Frame(file, at, function, self.is_users(file), text))
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
        path, home = os.path.abspath(file), self._beside_the_script()
        if any(path.startswith(one) and not home.startswith(one) for one in self._generated):
            return False
        return path.startswith(home) or not path.startswith(self._installed)

    def _beside_the_script(self) -> str:
        if not self._home:
            main = getattr(sys.modules.get("__main__"), "__file__", None)
            self._home = os.path.dirname(os.path.abspath(main)) + os.sep if main else os.devnull
        return self._home


def _generated() -> set[str]:
    """Where a trial keeps code that is written as it runs: nobody wrote that, or can look it up."""
    paths = [*kept_apart(), *(os.environ.get(name, "") for name in CACHES)]
    return {os.path.abspath(path) + os.sep for path in paths if path}


def _folders() -> set[str]:
    """Where Python and what was installed into it lie. An environment may lie in the project."""
    paths = [*sysconfig.get_paths().values(), sys.base_prefix, sys.prefix]
    paths += [*site.getsitepackages(), site.getusersitepackages()]
    # As clusters' modules put them on PYTHONPATH, and environments one that they build upon.
    paths += [path for path in sys.path if path.endswith(PACKAGES)]
    torch = sys.modules.get("torch")
    if torch is not None and torch.__file__:
        paths.append(os.path.dirname(os.path.dirname(torch.__file__)))
    return {os.path.abspath(path) + os.sep for path in paths if len(path) > 1}
