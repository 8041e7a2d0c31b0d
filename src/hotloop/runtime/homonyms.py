"""Modules of the script's own that have the name of one of Python's: `statistics.py`, say.

Python looks beside the script before it looks into its library. But a module that is loaded is not
looked for, and by the time the script starts we have loaded many. So those that the script has a
module of the same name for are forgotten again: we have what we need of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

WITH_A_VALUE = ("-X", "-W", "--check-hash-based-pycs")
"""Options of Python's that may stand before a script, and what follows them is theirs."""


def forget(before: Iterable[str]) -> None:
    """`before`: the modules that Python had loaded when we came."""
    if sys.flags.safe_path:
        return
    folder = beside(sys.orig_argv[1:], os.getcwd())
    try:
        there = {entry.partition(".")[0] for entry in os.listdir(folder)}
    except OSError:
        return
    ours = {name.partition(".")[0] for name in sys.modules} - set(before)
    hidden = {name for name in ours & there & sys.stdlib_module_names if _is_found(name, folder)}
    for name in list(sys.modules):
        if name.partition(".")[0] in hidden:
            del sys.modules[name]


def beside(arguments: Sequence[str], cwd: str) -> str:
    """Where Python looks first, by the arguments it was started with."""
    rest = iter(arguments)
    for argument in rest:
        if argument in WITH_A_VALUE:
            next(rest, None)
        elif argument[:2] in ("-m", "-c"):
            return cwd
        elif not argument.startswith("-"):
            return os.path.dirname(os.path.realpath(os.path.join(cwd, argument)))
    return cwd


def _is_found(name: str, folder: str) -> bool:
    """As Python would: what is built in comes first, and a folder without code comes last."""
    if BuiltinImporter.find_spec(name) or FrozenImporter.find_spec(name):
        return False
    spec = PathFinder.find_spec(name, [folder])
    return spec is not None and spec.loader is not None
