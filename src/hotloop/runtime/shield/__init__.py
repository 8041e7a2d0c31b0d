"""Keeps the user's files as they are during a trial, where no overlay does.

That is everywhere if the kernel does not let us mount. Otherwise it is outside the folders that are
covered: a script may build the name of its output folder from whatever it likes.

The script sees an overlay, as Python sees files: what it writes, renames or deletes happens in a
mirror of its folders under the scratch space, and what it reads afterwards shows that. Its own
files are never opened for writing. From the ground up:

    paths      plain functions on paths, under all the rest
    territory  which paths are the user's
    mirror     the tree in scratch space: what was written, and marks for what was deleted
    view       where a path is to be read: the original, the mirror, or nowhere
    changes    what writing, renaming and deleting do to the mirror
    calls      stand-ins for `open` and the functions of `os`, on which Python's libraries build
    savers     torch, safetensors and others that write by themselves, past Python
    guard      an audit hook that refuses, or at least notes, what none of these caught

All processes of a trial share one mirror. No state of it lives in memory alone, so a forked worker
sees what its parent deleted, and a kill at any moment leaves nothing half done to the user's files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from hotloop.runtime.shield import savers
from hotloop.runtime.shield.calls import Calls
from hotloop.runtime.shield.changes import Changes
from hotloop.runtime.shield.guard import Guard
from hotloop.runtime.shield.mirror import Mirror
from hotloop.runtime.shield.territory import Territory
from hotloop.runtime.shield.view import View

_guards: list[Guard] = []


def install(
    scratch: str,
    passthrough: Sequence[str],
    protect: Sequence[str] = (),
    is_covered: bool = False,
) -> None:
    """Shield this process and those it forks, from here to its end.

    Everything is the user's except `scratch`, `passthrough`, the system's temporary folder, its
    kernel file systems, installed packages and `__pycache__`; within those, the working folder and
    `protect` are the user's all the same, with what lies beside them in a folder of the temporary
    one. `is_covered`: overlays keep `protect` as it is.
    """
    if _guards:
        return
    scratch = os.path.realpath(scratch)
    works = (os.getcwd(), *protect)
    if is_covered:
        territory = Territory(scratch, (*passthrough, *protect), (), works)
    else:
        territory = Territory(scratch, passthrough, works, works)
    view = View(Mirror(scratch), territory)
    changes = Changes(view)
    guard = Guard(territory, scratch, tells_of_programs=not is_covered)
    _guards.append(guard)
    Calls(view, changes, guard).install()
    savers.install(view, changes)
    sys.addaudithook(guard)
    # `import` writes by functions of its own, past all stand-ins.
    if not is_covered and not sys.pycache_prefix:
        sys.dont_write_bytecode = True


def unshielded() -> list[str]:
    """What reached, or may have reached, the user's files all the same: one line each."""
    return _guards[0].notes() if _guards else []
