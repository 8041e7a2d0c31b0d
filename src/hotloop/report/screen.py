"""What all screens have in common: lines that fit the terminal, none of them markup or an escape.

Prose is folded. Commands, paths and names are not, so that they can be copied.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from hotloop.trial.terminal import harmless

WIDEST, NARROWEST = 100, 40
SOFT = "bright_black"
LEAST = 22
"""Letters of a line that are worth standing beside something."""

Facts = Iterable[tuple[str, str]]


def width(console: Console) -> int:
    return max(NARROWEST, min(console.width, WIDEST))


def line(console: Console, text: Text | str = "") -> None:
    """As it is, however long."""
    text = Text(text) if isinstance(text, str) else text
    console.print(text, soft_wrap=True, highlight=False)


def wrapped(console: Console, text: str, indent: int) -> list[str]:
    room = max(width(console) - indent, LEAST)
    return textwrap.wrap(harmless(text), room, break_long_words=False, break_on_hyphens=False)


def prose(
    console: Console,
    text: str,
    indent: int,
    style: str = "",
    mark: str | Text = "",
) -> None:
    """`mark`: what stands before its first line, in the indent."""
    mark = Text(mark, SOFT) if isinstance(mark, str) else mark
    for part in wrapped(console, text, indent) or [""]:
        made = mark.copy()
        made.pad_right(max(indent - mark.cell_len, 0))
        line(console, made.append(part, style))
        mark = Text()


def facts(console: Console, found: Facts, label: int) -> None:
    """A label that repeats is shown once. `label`: how wide they are."""
    said = ""
    for name, text in found:
        prose(console, text, label + 2, mark="" if name == said else f"  {name}")
        said = name


def flow(console: Console, items: Sequence[str | Text], indent: int, style: str = "") -> None:
    """One after the other, as many on a line as it holds; none of them is broken."""
    made = Text(" " * indent)
    for item in items:
        piece = Text(harmless(item), style) if isinstance(item, str) else item
        if made.cell_len > indent and made.cell_len + 3 + piece.cell_len > width(console):
            line(console, made)
            made = Text(" " * indent)
        made.append("   " if made.cell_len > indent else "").append_text(piece)
    line(console, made)


def cut(console: Console, text: str, indent: int) -> str:
    """To one line of a terminal; whole where it goes into a file."""
    room, text = console.width - indent, harmless(text)
    return text if not console.is_terminal or len(text) <= room else f"{text[: room - 1]}…"
