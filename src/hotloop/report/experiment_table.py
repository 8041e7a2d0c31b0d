"""An experiment's table as lines that fit a width."""

from __future__ import annotations

import re
from collections.abc import Sequence

GAP = "  "
SPREAD = re.compile(r" \[[^\]]*\]$")
"""What stands behind a gain: the least and the largest of its rounds."""

Row = Sequence[str]


def lines(head: Row, rows: Sequence[Row], width: int) -> list[str]:
    """The head first, over several lines where it is wider than what stands below it. Where it is
    still too wide, spreads go, the last column's first; and then labels are shortened."""
    for plain in range(len(head), -1, -1):
        cells = [[_plain(cell) if at >= plain else cell for at, cell in enumerate(r)] for r in rows]
        columns = [_words(name, cells, at) for at, name in enumerate(head)]
        widths = [_width(column, cells, at) for at, column in enumerate(columns)]
        over = sum(widths) + len(GAP) * (len(head) - 1) - width
        if over <= 0:
            break
    if over > 0:
        widths[0] = max(widths[0] - over, 8)
        cells = [[_shortened(row[0], widths[0]), *row[1:]] for row in cells]
    depth = max(map(len, columns))
    titles = [[""] * (depth - len(column)) + column for column in columns]
    table = [[title[at] for title in titles] for at in range(depth)] + cells
    return [_line(row, widths) for row in table]


def _plain(cell: str) -> str:
    return SPREAD.sub("", cell)


def _words(name: str, rows: Sequence[Row], at: int) -> list[str]:
    """A title in lines no longer than what is below it, as far as its words allow."""
    room = max((len(row[at]) for row in rows), default=0)
    broken: list[str] = []
    for word in name.split():
        if broken and len(broken[-1]) + 1 + len(word) <= room:
            broken[-1] += f" {word}"
        else:
            broken.append(word)
    return broken


def _width(title: list[str], rows: Sequence[Row], at: int) -> int:
    return max((len(text) for text in (*title, *(row[at] for row in rows))), default=0)


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _line(row: Row, widths: Sequence[int]) -> str:
    return GAP.join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
