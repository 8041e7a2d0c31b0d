"""An experiment's table on the screen."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

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
    _line(console, Text())
    heading = Text.assemble((f"  {harmless(title)}", "bold"), f"   {harmless(where)}")
    _line(console, heading)
    _line(console, Text())
    table = [head, *rows]
    widths = [max(len(harmless(row[at])) for row in table) for at in range(len(head))]
    for place, row in enumerate(table):
        cells = [f"{harmless(cell):<{width}}" for cell, width in zip(row, widths, strict=True)]
        _line(console, Text(f"  {'  '.join(cells)}".rstrip(), "" if place else "bright_black"))
    _line(console, Text())
    for note in notes:
        console.print(Text(f"  {harmless(note)}"), highlight=False)
    for label, text in left:
        _line(console, Text.assemble((f"  {label:<9}", "bright_black"), harmless(text)))


def _line(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True, highlight=False)
