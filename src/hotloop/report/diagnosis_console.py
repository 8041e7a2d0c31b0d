"""What limits the job, on the screen that `hotloop profile` ends with."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from hotloop.report.diagnosis_rows import DiagnosisRows, FindingRow
from hotloop.trial.terminal import harmless

MARKS = {"passed": ("✓", "green"), "failed": ("✗", "red"), "unknown": ("?", "yellow")}
NOT_APPLICABLE = ("–", "bright_black")


def show_diagnosis(console: Console, found: DiagnosisRows) -> None:
    _print(console, Text(f"  {harmless(found.verdict)}", style="bold"))
    _print(console, Text())
    for number, row in enumerate(found.limits, start=1):
        _finding(console, f"{number}", row)
    for row in found.remarks:
        _finding(console, "·", row)
    if found.more:
        _print(console, Text(f"     and {found.more} more, with --json", style="bright_black"))
    _checklist(console, found)


def _finding(console: Console, number: str, row: FindingRow) -> None:
    gain = f"could be {row.gain} as fast, by {row.effort}" if row.gain else ""
    title = Text.assemble((f"  {number}  ", "bright_black"), (harmless(row.title), "bold"))
    _print(console, title)
    if gain:
        _print(console, Text(f"     {gain}", style="green"))
    for place in row.places:
        _print(console, Text(f"     {harmless(place)}", style="cyan"))
    for sentence in row.evidence:
        _print(console, Text(f"     {harmless(sentence)}", style="bright_black"))
    tried = f" (hotloop optimize tries {', '.join(row.levers)})" if row.levers else ""
    _print(console, Text(f"     → {harmless(row.remedy)}{tried}"))
    _print(console, Text())


def _checklist(console: Console, found: DiagnosisRows) -> None:
    line = Text("  ")
    for status, name, _ in found.checklist:
        mark, style = MARKS.get(status, NOT_APPLICABLE)
        line.append(mark, style=style)
        line.append(f" {name}   ")
    _print(console, line)
    for status, name, evidence in found.checklist:
        if status == "failed":
            _print(console, Text(f"    ✗ {name}: {harmless(evidence)}", style="bright_black"))
    _print(console, Text())


def _print(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True, highlight=False)
