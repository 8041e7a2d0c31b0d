"""What a script puts into the temporary folder lies in the trial's own, and goes with it.

A trial ends in the middle of its script, whose workers would have tidied up at the end. Only names
that Python makes up are concerned: no later run could look for those. A download that a script
keeps under a name of its own in the temporary folder stays there, and is not made again.
"""

from __future__ import annotations

import os
import tempfile
from multiprocessing import process
from os.path import dirname, join, realpath
from typing import Any

FOLDER = "temporary"
LONGEST = 104
"""Of a socket's name, by which loader workers hand out tensors."""
SOCKET = "listener-12345678"


def usual_folder() -> str:
    """As Python sees it now. The script may name another before it uses the first."""
    chosen = tempfile.tempdir
    try:
        return tempfile.gettempdir()
    finally:
        tempfile.tempdir = chosen


_apart: list[str] = []


def kept_apart() -> tuple[str, ...]:
    """The folder whose files go with the trial, by each of its names. Forked processes know it."""
    return tuple(dict.fromkeys(name for one in _apart for name in (one, realpath(one))))


def keep_apart(scratch: str) -> None:
    """From here on, in this process and those it forks; of those it spawns the sockets alone."""
    usual, ours = usual_folder(), join(scratch, FOLDER)
    elsewhere = realpath(dirname(scratch)) != realpath(usual)  # perhaps in memory
    if elsewhere or len(os.fsencode(join(ours, SOCKET))) >= LONGEST:
        return
    os.makedirs(ours, mode=0o700, exist_ok=True)
    _apart[:] = [ours]
    process.current_process()._config["tempdir"] = ours  # type: ignore[attr-defined]
    settled: Any = getattr(tempfile, "_sanitize_params", None)
    if settled is None:
        return

    def settle(prefix: Any, suffix: Any, dir: Any) -> tuple[Any, Any, Any, Any]:
        prefix, suffix, where, kind = settled(prefix, suffix, dir)
        if dir is None and os.fsdecode(where) == usual:
            where = ours if kind is str else os.fsencode(ours)
        return prefix, suffix, where, kind

    tempfile._sanitize_params = settle  # type: ignore[attr-defined]
