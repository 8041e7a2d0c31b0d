"""What `hotloop profile --depth` shows below its screen."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from hotloop.report import screen
from hotloop.report.depth_rows import DepthRows, Table
from hotloop.trial.terminal import harmless

GAP = "  "
LABEL = 11


def show_depth(console: Console, kind: str, found: DepthRows) -> None:
    """Everything is printed as literal text: nothing a script says is markup or an escape."""
    screen.line(console)
    title = Text(f"depth {kind}", "bold")
    screen.flow(console, [title, "under a profiler: to compare, not to time"], 2)
    for table in found.tables:
        _show(console, table)
    if found.facts or found.problems:
        screen.line(console)
    screen.facts(console, found.facts, LABEL)
    for problem in found.problems:
        screen.prose(console, problem, LABEL + 2, "yellow", mark="  note")
    if found.files:
        screen.line(console)
    for number, how in enumerate(found.files):
        _whole(console, "" if number else "files", how)


def _show(console: Console, table: Table) -> None:
    screen.line(console)
    screen.line(console, Text(f"  {table.title}", style="bold"))
    cells = [table.head, *table.rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(table.head))]
    numbers = len(table.head) - table.left
    for index, row in enumerate(cells):
        parts = [
            text.rjust(width) if column < numbers else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        line = screen.cut(console, GAP + GAP.join(parts).rstrip(), 0)
        screen.line(console, Text(line, style="" if index else screen.SOFT))


def _whole(console: Console, label: str, text: str) -> None:
    """A path, to be copied."""
    screen.line(console, Text.assemble((f"  {label:<{LABEL}}", screen.SOFT), harmless(text)))
