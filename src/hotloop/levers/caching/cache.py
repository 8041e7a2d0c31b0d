"""What is kept of one dataset, for as long as the dataset is what it was."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from mmap import mmap
from typing import Any

from hotloop.levers.caching.constancy import Likeness
from hotloop.levers.caching.filling import Filled
from hotloop.levers.caching.shelf import Shelf

CHANGED = "the script changes its dataset"
ANEW = "the script builds its dataset anew for every pass"


class Cache:
    """Of one dataset: its items, or the reason why they are not kept."""

    def __init__(self, torch: Any, dataset: Any, filled: Filled | None, reason: str = "") -> None:
        self.dataset = _weakly(dataset, lambda: self.drop(ANEW if self.passes < 2 else ""))
        self.kind = type(dataset)
        self.filled, self.reason = filled, reason
        self.passes = self.batches = 0
        self._torch = torch
        self._likeness = Likeness(torch, dataset) if filled else None
        self._missed = mmap(-1, 1)
        """Shared with workers: whether an item was ever asked for that is not kept."""

    @property
    def shelf(self) -> Shelf:
        """Empty where nothing is kept."""
        return self.filled.shelf if self.filled else Shelf(self._torch, 0)

    @property
    def is_complete(self) -> bool:
        return self.filled is not None and not self._missed[0]

    def drop(self, reason: str) -> None:
        """For good."""
        self.reason, self.filled = self.reason or reason, None
        self._likeness = None

    def look(self, thoroughly: bool) -> None:
        """Whether the dataset is what it was when its items were drawn."""
        dataset = self.dataset()
        if self._likeness is None or dataset is None:
            return
        if not self._likeness.holds(dataset, thoroughly):
            self.drop(CHANGED)
            self.batches = 0

    def miss(self) -> None:
        """An item was asked for that is not kept, here or in a worker."""
        self._missed[0] = 1


def _weakly(dataset: Any, gone: Callable[[], None]) -> Callable[[], Any]:
    try:
        return weakref.ref(dataset, lambda _: gone())
    except TypeError:  # a list, say: nothing is kept of those
        return lambda: dataset
