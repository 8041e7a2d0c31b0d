"""What limits the job, on the screen that `hotloop profile` ends with."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from hotloop.diagnose.wording import in_a_sentence
from hotloop.report import screen
from hotloop.report.diagnosis_rows import DiagnosisRows, FindingRow

MARKS = {"passed": ("✓", "green"), "failed": ("✗", "red"), "unknown": ("?", "yellow")}
INDENT = 5
NOT_APPLICABLE = ("–", "bright_black")


def show_diagnosis(console: Console, found: DiagnosisRows) -> None:
    screen.prose(console, found.verdict, 2, "bold")
    screen.line(console)
    for number, row in enumerate(found.limits, start=1):
        _finding(console, f"{number}", row)
    for row in found.remarks:
        _finding(console, "·", row)
    if found.more:
        screen.prose(console, f"and {found.more} more, with --json", INDENT, screen.SOFT)
    _checklist(console, found)


def _finding(console: Console, number: str, row: FindingRow) -> None:
    screen.prose(console, row.title, INDENT, "bold", mark=f"  {number}")
    if row.gain:
        screen.prose(console, f"could be {row.gain} as fast, by {row.effort}", INDENT, "green")
    for place in row.places:
        screen.line(console, Text(" " * INDENT + screen.cut(console, place, INDENT), style="cyan"))
    for sentence in row.evidence:
        screen.prose(console, sentence, INDENT, screen.SOFT)
    tried = f" (hotloop optimize tries {', '.join(row.levers)})" if row.levers else ""
    arrow = Text(" " * INDENT + "→")
    screen.prose(console, f"{row.remedy}{tried}", INDENT + 2, mark=arrow)
    screen.line(console)


def _checklist(console: Console, found: DiagnosisRows) -> None:
    marked = [(MARKS.get(status, NOT_APPLICABLE), name) for status, name, _ in found.checklist]
    screen.flow(console, [Text.assemble(mark, f" {name}") for mark, name in marked], 2)
    for status, name, evidence in found.checklist:
        if status == "failed":
            told = f"{name}: {in_a_sentence(evidence)}"
            screen.prose(console, told, 6, screen.SOFT, mark="    ✗")
    screen.line(console)
