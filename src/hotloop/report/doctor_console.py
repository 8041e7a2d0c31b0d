"""The one screen that `hotloop doctor` ends with."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from hotloop.doctor.check import Check, Status
from hotloop.report.doctor_rows import DoctorRows, RoofRow
from hotloop.trial.terminal import harmless

# Told apart without colour too.
MARKS = {
    Status.OK: ("ok", "green"),
    Status.WARNING: ("!!", "yellow"),
    Status.UNKNOWN: ("?", "cyan"),
}


def show_doctor(console: Console, found: DoctorRows) -> None:
    """Everything is printed as literal text: a folder's name is no markup and no escape."""
    _print(console, Text())
    _print(console, Text(f"  {harmless(found.title)}", style="bold"))
    for label, text in found.facts:
        _print(console, Text.assemble((f"  {label:<9} ", "bright_black"), harmless(text)))
    _print(console, Text())
    _print(console, Text(f"  roof      {found.roof_note}"))
    width = max((len(row.label) for row in found.roof), default=0)
    for row in found.roof:
        _print(console, _roof_line(row, width))
    _print(console, Text())
    _print(console, Text(f"  state     {found.verdict}"))
    width = max((len(harmless(check.name)) for check in found.checks), default=0)
    for check in found.checks:
        for line in _check_lines(check, width):
            _print(console, line)


def _roof_line(row: RoofRow, width: int) -> Text:
    line = Text.assemble(f"    {row.label:<{width}}  ", (row.text, "bold"))
    return line.append(f"   {row.note}", "bright_black") if row.note else line


def _check_lines(check: Check, width: int) -> list[Text]:
    mark, colour = MARKS[check.status]
    name = harmless(check.name)
    first = Text.assemble(
        "    ", (f"{mark:<2}", colour), f" {name:<{width}}  {harmless(check.evidence)}"
    )
    if not check.remedy:
        return [first]
    return [first, Text.assemble(" " * (9 + width), (f"→ {harmless(check.remedy)}", "bold"))]


def _print(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True, highlight=False)
