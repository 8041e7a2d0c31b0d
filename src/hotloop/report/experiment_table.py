"""An experiment's table as lines that fit a width."""

from __future__ import annotations

import re
from collections.abc import Sequence

GAP = "  "
SPREAD = re.compile(r" \[[^\]]*\]$")
"""What stands behind a gain: the least and the largest of its rounds."""

Row = Sequence[str]


def lines(head: Row, rows: Sequence[Row], width: int) -> list[str]:
    """The head first. What is too wide has its titles over several lines, then loses spreads, the
    last column's first, and then the ends of its labels."""
    titles, cells = [[name] for name in head], [list(row) for row in rows]
    for plain in range(len(head), -1, -1):
        if _over(titles, cells, width) <= 0:
            break
        cells = [[_plain(c) if at >= plain else c for at, c in enumerate(r)] for r in rows]
        titles = [_broken(name, cells, at) for at, name in enumerate(head)]
    over = _over(titles, cells, width)
    if over > 0:
        room = max(_width(titles, cells, 0) - over, 8)
        cells = [[_shortened(row[0], room), *row[1:]] for row in cells]
    widths = [_width(titles, cells, at) for at in range(len(head))]
    depth = max(map(len, titles))
    above = [[""] * (depth - len(title)) + title for title in titles]
    table = [[title[at] for title in above] for at in range(depth)] + cells
    return [_line(row, widths) for row in table]


def _over(titles: Sequence[list[str]], rows: Sequence[Row], width: int) -> int:
    columns = [_width(titles, rows, at) for at in range(len(titles))]
    return sum(columns) + len(GAP) * (len(columns) - 1) - width


def _plain(cell: str) -> str:
    return SPREAD.sub("", cell)


def _broken(name: str, rows: Sequence[Row], at: int) -> list[str]:
    """A title in lines no longer than what is below it, as far as its words allow."""
    room = max((len(row[at]) for row in rows), default=0)
    broken: list[str] = []
    for word in name.split():
        if broken and len(broken[-1]) + 1 + len(word) <= room:
            broken[-1] += f" {word}"
        else:
            broken.append(word)
    return broken or [""]


def _width(titles: Sequence[list[str]], rows: Sequence[Row], at: int) -> int:
    return max((len(text) for text in (*titles[at], *(row[at] for row in rows))), default=0)


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _line(row: Row, widths: Sequence[int]) -> str:
    return GAP.join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
