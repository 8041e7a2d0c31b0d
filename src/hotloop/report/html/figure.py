"""A figure of the report: drawn for wide and for narrow pages, with its data as a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from markupsafe import Markup

WIDE, NARROW = 860.0, 335.0
"""A drawing's width in pixels. Text keeps its size, so a phone gets a drawing of its own."""

MANY = 40
"""Rows, of a table that would fill more than a screen."""


@dataclass(frozen=True)
class Number:
    """A cell that is sorted by its value, however it is written."""

    text: str
    value: float | None


Cell = str | Number


@dataclass(frozen=True)
class DataTable:
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def sorts(self, column: int) -> bool:
        """Few rows need no sorting, and what has no values has no order."""
        cells = [row[column] for row in self.rows]
        valued = [cell for cell in cells if isinstance(cell, str) or cell.value is not None]
        return len(cells) > 2 and bool(valued)

    @property
    def is_short(self) -> bool:
        """A name and a few figures: such a table need not be as wide as the page."""
        return len(self.head) < 5 and all(map(self.is_number, range(1, len(self.head))))

    @property
    def is_long(self) -> bool:
        """Such a table scrolls in itself, on a screen, so that what comes after it is found."""
        return len(self.rows) > MANY

    def is_number(self, column: int) -> bool:
        return any(isinstance(row[column], Number) for row in self.rows)


@dataclass(frozen=True)
class Figure:
    key: str
    """Its name in the page, and of the files that it is saved as."""
    title: str
    wide: Markup
    narrow: Markup
    table: DataTable
    note: str = ""
    legend: tuple[tuple[str, str], ...] = ()
    """The class that gives it its colour, and what it means."""


def drawn(
    key: str,
    title: str,
    draw: Callable[[float], Markup],
    table: DataTable,
    note: str = "",
    legend: tuple[tuple[str, str], ...] = (),
) -> Figure:
    return Figure(key, title, draw(WIDE), draw(NARROW), table, note, legend)
