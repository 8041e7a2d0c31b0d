"""Which paths are the user's, and so the shield's to keep as they are."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Sequence

from hotloop.runtime.shield.paths import parent
from hotloop.runtime.temporary import usual_folder

KERNEL = ("/dev", "/proc", "/sys")


class Territory:
    """The innermost folder that was named decides for a path; the root was named the user's.

    `works`: folders that they work in. Of the temporary folder nothing is the user's, except the
    folders in it that hold those: `../results` is no more temporary than what lies beside a script.
    """

    def __init__(
        self,
        scratch: str,
        passthrough: Sequence[str],
        protect: Sequence[str],
        works: Sequence[str] = (),
    ) -> None:
        temporary = os.path.realpath(usual_folder())
        protected = {os.path.realpath(folder) for folder in protect}
        # Working right in the temporary folder does not make every temporary file the user's.
        protected.discard(temporary)
        free = (*KERNEL, *_installed(), temporary, *passthrough, scratch)
        protected |= {around for one in works if (around := _around(one, temporary))}
        self._named = {"/": True} | dict.fromkeys(protected, True)
        self._named |= {os.path.realpath(folder): False for folder in free}

    def shields(self, path: str) -> bool:
        """`path` is absolute and without links."""
        if "/__pycache__" in path:
            return False
        while path not in self._named:
            path = parent(path)
        return self._named[path]


def _around(folder: str, temporary: str) -> str | None:
    """The folder of the temporary one that holds it."""
    path = os.path.realpath(folder)
    while parent(path) not in (temporary, path):
        path = parent(path)
    return path if parent(path) == temporary else None


def _installed() -> list[str]:
    """Where this interpreter keeps its library and its packages."""
    folders = sysconfig.get_paths()
    return [folders[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
