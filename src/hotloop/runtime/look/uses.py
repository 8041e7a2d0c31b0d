"""Which lines compute what nothing but Python reads: a norm that is printed, a metric, a condition.

Each result is known by where it lies, and by the line that made it, until another comes to lie
there. What no operator of another line takes up, and is asked for as a number, was made for that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

ASKS = ("_local_scalar_dense", "equal")
"""Operators whose result is a number of Python's."""


class Uses:
    def __init__(self) -> None:
        self._made_by: dict[int, Hashable] = {}
        self._users: dict[Hashable, set[Hashable]] = defaultdict(set)
        self._asks: set[Hashable] = set()
        self._lines: set[Hashable] = set()
        self._makes: set[Hashable] = set()
        self._matters: set[Hashable] = set()
        """They write to what others have made, or a backward pass comes to them."""

    def forward(
        self, line: Hashable, name: str, inputs: Sequence[Any], results: Sequence[Any], writes: bool
    ) -> None:
        """`writes`: to one of its operands."""
        self._lines.add(line)
        if name in ASKS:
            self._asks.add(line)
        given = [_place(one) for one in inputs]
        self._take(given, line)
        for place in map(_place, results):
            if place not in given:
                self._made_by[place] = line
                self._makes.add(line)
            elif writes and self._made_by.get(place) != line:
                self._matters.add(line)

    def backward(self, undone: Hashable, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        """An operator that undoes one of this line."""
        self._matters.add(undone)
        self._take([_place(one) for one in inputs], undone)
        for one in results:
            self._made_by.pop(_place(one), None)

    def only_read(self) -> set[Hashable]:
        """A line whose results go to others is one where all of these are.

        One that only picks parts makes nothing: who takes up a part takes up what it is a part of.
        """
        picks = self._lines - self._matters - self._makes - self._asks
        found = self._lines - self._matters
        while wrong := {line for line in found - picks if not self._ends_in(line, found)}:
            found -= wrong
        return found - picks

    def _ends_in(self, line: Hashable, found: set[Hashable]) -> bool:
        users = self._users[line]
        return users <= found if users else line in self._asks

    def _take(self, places: Iterable[int], by: Hashable) -> None:
        for place in places:
            made_by = self._made_by.get(place)
            if made_by is not None and made_by != by:
                self._users[made_by].add(by)


def _place(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)
