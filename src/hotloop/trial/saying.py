"""What the exception says that ended a script, as a part of one sentence."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from hotloop.trial.result import Failure

MOST = 160
"""Characters of its message: the rest, and where it was raised, is in the trial's output."""
IN_A_PATH = r"[^\s'\"`:,;()\[\]<>]"
"""A character that does not end one in a sentence."""
PACKAGE = str(Path(__file__).parents[1])


def said(failure: Failure, ours: Sequence[str] = ()) -> str:
    """Its kind, and the first line of its message.

    `ours`: folders of the trial, which mean nothing to the user. Of files in them, as of our own
    code, only the name is left; the user's own paths stay whole.
    """
    line = _shortened(_named(_first_line(failure.message), (PACKAGE, *ours))).rstrip(".:")
    return f"{failure.kind}: {line}" if line else failure.kind


def _first_line(message: str) -> str:
    """With the one below it, where it only announces that one, as torch's compilers do."""
    lines = [words for line in message.splitlines() if (words := " ".join(line.split()))]
    ahead = next((at for at, line in enumerate(lines) if not line.endswith(":")), len(lines))
    return " ".join(lines[: ahead + 1])


def _named(line: str, ours: Sequence[str]) -> str:
    folders = {spelt for path in ours if path for spelt in (path, os.path.realpath(path))}
    for folder in sorted(folders, key=len, reverse=True):
        inside = re.compile(rf"{re.escape(folder)}(?:/{IN_A_PATH}*|(?!{IN_A_PATH}))")
        line = inside.sub(lambda found: os.path.basename(found.group().rstrip("/")), line)
    return line


def _shortened(line: str) -> str:
    """Between two words, where there is room between them."""
    if len(line) <= MOST:
        return line
    cut = line[:MOST]
    words = cut.rpartition(" ")[0]
    return f"{words if len(words) > MOST // 2 else cut} …"
