"""An experiment's table on the screen."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from hotloop.report import screen
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
    table = [head, *rows]
    widths = [max(len(harmless(row[at])) for row in table) for at in range(len(head))]
    for place, row in enumerate(table):
        cells = [f"{harmless(cell):<{width}}" for cell, width in zip(row, widths, strict=True)]
        shown = screen.cut(console, f"  {'  '.join(cells)}".rstrip(), 0)
        screen.line(console, Text(shown, "" if place else screen.SOFT))
    screen.line(console)
    for note in notes:
        screen.prose(console, note, 2)
    for label, text in left:
        screen.line(console, Text.assemble((f"  {label:<9}", screen.SOFT), harmless(text)))
