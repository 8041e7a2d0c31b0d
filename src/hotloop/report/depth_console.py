"""What `hotloop profile --depth` shows below its screen."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from hotloop.report.depth_rows import DepthRows, Table
from hotloop.trial.terminal import harmless

GAP = "  "


def show_depth(console: Console, kind: str, found: DepthRows) -> None:
    """Everything is printed as literal text: nothing a script says is markup or an escape."""
    _print(console, Text())
    title = Text.assemble(
        (f"  depth {kind}", "bold"), "   under a profiler: to compare, not to time"
    )
    _print(console, title)
    for table in found.tables:
        _show(console, table)
    if found.facts or found.problems:
        _print(console, Text())
    for label, text in found.facts:
        _fact(console, label, text)
    for problem in found.problems:
        _fact(console, "note", problem, "yellow")
    if found.files:
        _print(console, Text())
    for number, how in enumerate(found.files):
        _fact(console, "" if number else "files", how)


def _show(console: Console, table: Table) -> None:
    _print(console, Text())
    _print(console, Text(f"  {table.title}", style="bold"))
    cells = [table.head, *table.rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(table.head))]
    numbers = len(table.head) - table.left
    for index, row in enumerate(cells):
        parts = [
            text.rjust(width) if column < numbers else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        line = harmless(GAP + GAP.join(parts).rstrip())
        if console.is_terminal and len(line) > console.width:
            line = line[: console.width - 1] + "…"
        _print(console, Text(line, style="" if index else "bright_black"))


def _fact(console: Console, label: str, text: str, style: str = "") -> None:
    _print(console, Text.assemble((f"  {label:<11}", "bright_black"), (harmless(text), style)))


def _print(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True, highlight=False)
