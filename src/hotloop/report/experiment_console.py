"""An experiment's table on the screen."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from hotloop.report import experiment_table, screen
from hotloop.trial.terminal import harmless


def show_experiment(
    console: Console,
    title: str,
    where: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str],
    left: Sequence[tuple[str, str]],
) -> None:
    screen.line(console)
    screen.flow(console, [Text(harmless(title), "bold"), where], 2)
    screen.line(console)
    cells = [[harmless(cell) for cell in row] for row in rows]
    table = experiment_table.lines(head, cells, console.width - 2)
    titles = len(table) - len(rows)
    for place, text in enumerate(table):
        shown = screen.cut(console, f"  {text}", 0)
        screen.line(console, Text(shown, screen.SOFT if place < titles else ""))
    screen.line(console)
    for note in notes:
        screen.prose(console, note, 2)
    for label, text in left:
        screen.line(console, Text.assemble((f"  {label:<9}", screen.SOFT), harmless(text)))
