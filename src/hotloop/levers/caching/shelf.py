"""All items of a dataset, as they come from the processes that draw them: in columns, if alike.

As soon as one differs from the first, in shape or in kind, all are kept as objects of their own.
"""

from __future__ import annotations

import sys
from typing import Any

from hotloop.levers.caching.columns import Columns
from hotloop.levers.caching.kept_items import copied, packed, unpacked


class Packer:
    """In a process that draws items. It does not try again what has failed once."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._are_alike = True

    def packed(self, items: list[Any]) -> tuple[Any, bytearray]:
        columns = Columns.of(self._torch, items) if self._are_alike else None
        self._are_alike = columns is not None
        return columns.packed() if columns else packed(self._torch, items)


class Shelf:
    def __init__(self, torch: Any, count: int) -> None:
        self._torch = torch
        self._items: list[Any] = [None] * count
        self.columns: Columns | None = None
        """None: each item is an object of its own."""
        self._in_columns: list[range] = []
        self._is_begun = False

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, number: Any) -> bool:
        """Many samplers draw from an array. Other kinds a dataset may take for something else."""
        numpy = sys.modules.get("numpy")
        is_one = type(number) is int or (numpy is not None and type(number) is numpy.int64)
        return is_one and 0 <= number < len(self)

    def put(self, first: int, message: Any, buffer: bytearray) -> int:
        """What was packed, from this item on. Returns how many there were."""
        if isinstance(message, list):
            self._take_apart()
            self._items[first : first + len(message)] = unpacked(self._torch, message, buffer)
            return len(message)
        part = Columns.unpacked(self._torch, message, buffer)
        numbers = range(first, first + len(part.rows[0]))
        if not self._is_begun:
            self.columns, self._is_begun = part.emptied(len(self)), True
        if self.columns is not None and part.layout == self.columns.layout:
            self.columns.put(first, part)
            self._in_columns.append(numbers)
        else:
            self._take_apart()
            self._items[numbers.start : numbers.stop] = map(part.item, range(len(numbers)))
        return len(numbers)

    def item(self, number: int) -> Any:
        """To be handed out: a script may change what it is given."""
        return copied(self._torch, self.kept(number))

    def kept(self, number: int) -> Any:
        """For those who only read it."""
        return self.columns.item(number) if self.columns else self._items[number]

    def batch(self, numbers: list[int]) -> Any:
        """As torch puts items together. None where each is an object of its own."""
        return self.columns.batch(numbers) if self.columns else None

    def _take_apart(self) -> None:
        self._is_begun = True
        if self.columns is not None:
            for number in (number for numbers in self._in_columns for number in numbers):
                self._items[number] = self.columns.item(number)
            self.columns = None
