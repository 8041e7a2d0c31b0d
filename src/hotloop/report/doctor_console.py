"""The one screen that `hotloop doctor` ends with."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from hotloop.doctor.check import Check, Status
from hotloop.report import screen
from hotloop.report.doctor_rows import DoctorRows, RoofRow
from hotloop.trial.terminal import harmless

LABEL = 10
# Told apart without colour too.
MARKS = {
    Status.OK: ("ok", "green"),
    Status.WARNING: ("!!", "yellow"),
    Status.UNKNOWN: ("?", "cyan"),
}


def show_doctor(console: Console, found: DoctorRows) -> None:
    """Everything is printed as literal text: a folder's name is no markup and no escape."""
    screen.line(console)
    screen.prose(console, found.title, 2, "bold")
    screen.facts(console, found.facts, LABEL)
    screen.line(console)
    screen.prose(console, found.roof_note, LABEL + 2, mark="  roof")
    longest = max((len(row.label) for row in found.roof), default=0)
    for row in found.roof:
        _roof(console, row, longest)
    screen.line(console)
    screen.prose(console, found.verdict, LABEL + 2, mark="  state")
    longest = max((len(harmless(check.name)) for check in found.checks), default=0)
    for check in found.checks:
        _check(console, check, longest)


def _roof(console: Console, row: RoofRow, longest: int) -> None:
    figure = Text.assemble(f"{row.label:<{longest}}  ", (row.text, "bold"))
    screen.flow(console, [figure, *((Text(row.note, screen.SOFT),) if row.note else ())], 4)


def _check(console: Console, check: Check, longest: int) -> None:
    """Beside its name where there is room for it, and below it where there is not."""
    sign, colour = MARKS[check.status]
    mark = Text.assemble("    ", (f"{sign:<2}", colour), f" {harmless(check.name)}")
    indent = 9 + longest
    if screen.width(console) - indent < screen.LEAST:
        indent = 7
        screen.line(console, mark)
        mark = Text()
    screen.prose(console, check.evidence, indent, mark=mark)
    if check.remedy:
        screen.prose(console, check.remedy, indent + 2, "bold", Text(" " * indent + "→", "bold"))
