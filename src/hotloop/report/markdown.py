"""The report of a search as Markdown, from the same rows as the screen: `report.md`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hotloop.report.search_rows import SCREENED, SearchRows
from hotloop.report.trial_rows import TrialRow
from hotloop.trial.terminal import harmless

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#])")


def page(
    name: str, command: str, found: SearchRows, commands: Sequence[tuple[str, str]] = ()
) -> str:
    parts = [
        [f"# {_text(name)}", "", f"**{_text(found.headline)}**"],
        ["The job:", "", *_code(command)],
        _phases(found),
        _ladder(found),
        _tried(found.tried),
        _facts(found.facts),
        *(["", f"{_text(what)}:", "", *_code(line)] for what, line in commands),
    ]
    return "\n\n".join("\n".join(part).strip("\n") for part in parts if part) + "\n"


def _phases(found: SearchRows) -> list[str]:
    lines = [[row.name, row.text] for row in found.phases]
    return ["## Where a step's time goes", "", *_table(["phase", "a step"], lines)] if lines else []


def _ladder(found: SearchRows) -> list[str]:
    if not found.ladder:
        return []
    head = ["", "own gain", "a step", "an epoch", "memory"]
    lines = [[row.name, row.gain, row.step, row.epoch, row.memory] for row in found.ladder]
    note = ["", f"{SCREENED} from one process alone"] if found.screened else []
    return ["## The ladder", "", *_table(head, lines), *note]


def _tried(tried: tuple[TrialRow, ...]) -> list[str]:
    if not tried:
        return []
    lines = [[str(row.number), row.words, row.value, row.ratio, row.ending] for row in tried]
    return ["## What was tried", "", *_table(["trial", "what", "", "", "outcome"], lines)]


def _facts(facts: Sequence[tuple[str, str]]) -> list[str]:
    listed = [f"- {_text(label)}: {_text(text)}" for label, text in facts]
    return ["## What was found on the way", "", *listed] if listed else []


def _table(head: list[str], lines: list[list[str]]) -> list[str]:
    return [_row(head), "|" + " --- |" * len(head), *map(_row, lines)]


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(map(_text, cells)) + " |"


def _code(text: str) -> list[str]:
    """Indented, as a fence could be closed by what stands in it."""
    return [f"    {line}" for line in harmless(text).splitlines()]


def _text(text: str) -> str:
    """One line of plain text, whatever a script said in it."""
    return _SPECIAL.sub(r"\\\1", " ".join(harmless(text).split()))
