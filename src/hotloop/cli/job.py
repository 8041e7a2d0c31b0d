"""The words on the command line that name a job.

`SCRIPT [ARGS…]`, `-m MODULE [ARGS…]`, or with a class in it `FILE:CLASS [NAME=VALUE…]`.
"""

from __future__ import annotations

import argparse
import os

from hotloop.errors import NotPython, ScriptNotFound, UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--python", metavar="PATH", help="the script's interpreter (default: the active one)"
    )
    parser.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE [ARGS…]", help="run a module"
    )
    parser.add_argument(
        "script",
        nargs=argparse.REMAINDER,
        metavar="SCRIPT [ARGS…]",
        help="run a script, or a class that describes a job: FILE:CLASS [NAME=VALUE…]",
    )


def words_of(arguments: argparse.Namespace) -> tuple[str, bool, tuple[str, ...]]:
    """Target, whether it is a module, and its own arguments, which are none of our business."""
    words = arguments.module or arguments.script
    if words[:1] == ["--"]:
        words = words[1:]
    if not words:
        raise UsageError("Which script?", f"For example: hotloop {arguments.command} train.py")
    return words[0], bool(arguments.module), tuple(words[1:])


def split_entry(target: str, is_module: bool) -> tuple[str, str]:
    """`jobs.py:MyJob` taken apart. A file that is really named so is that file."""
    file, colon, entry = target.rpartition(":")
    if not colon or (not is_module and os.path.exists(target)):
        return target, ""
    if not file or not entry.isidentifier():
        raise UsageError(
            f"{target} names no class: {entry!r} cannot be one.", "For example: jobs.py:MyJob"
        )
    return file, entry


def require_script(target: str) -> None:
    if not os.path.exists(target):
        raise ScriptNotFound(
            f"There is no file {target}.", f"You are in {os.getcwd()}; check the path."
        )
    if os.path.isdir(target):
        if not os.path.exists(os.path.join(target, "__main__.py")):
            raise NotPython(
                f"{target} is a folder without a __main__.py.", "Name the script inside it."
            )
        return
    try:
        with open(target, "rb") as file:
            start = file.read(65536)
    except OSError as error:
        raise ScriptNotFound(
            f"{target} cannot be read: {error.strerror}.", "Check its permissions."
        ) from None
    if not _looks_like_python(start, os.path.splitext(target)[1]):
        raise NotPython(f"{target} is not a Python file.", "Give the script that you train with.")


def _looks_like_python(start: bytes, suffix: str) -> bool:
    """Python itself will say what is wrong with a .py; here only what was clearly never meant."""
    if start.startswith(b"PK"):
        return True  # a zipped application
    if b"\0" in start:
        return False
    if suffix in (".py", ".pyw", ""):
        return True
    try:
        compile(start, "script", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True
