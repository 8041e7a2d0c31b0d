"""What is kept of one dataset, and what stands in its place where a loader asks for items."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from mmap import mmap
from typing import Any

from hotloop.levers.caching.constancy import Likeness
from hotloop.levers.caching.filling import Filled
from hotloop.levers.caching.kept_items import copied

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

    def item(self, index: Any, dataset: Any, is_copied_later: bool = False) -> Any:
        kept = self.filled.items if self.filled else ()
        if _is_number(index) and 0 <= index < len(kept):
            return kept[index] if is_copied_later else copied(self._torch, kept[index])
        self._missed[0] = 1
        return dataset[index]


def _is_number(index: Any) -> bool:
    """Many samplers draw from an array. Other kinds a dataset may take for something else."""
    numpy = sys.modules.get("numpy")
    return type(index) is int or (numpy is not None and type(index) is numpy.int64)


def _weakly(dataset: Any, gone: Callable[[], None]) -> Callable[[], Any]:
    try:
        return weakref.ref(dataset, lambda _: gone())
    except TypeError:  # a list, say: nothing is kept of those
        return lambda: dataset


class View:
    """A dataset, as far as a loader's fetcher knows it: in the job's own process or a worker."""

    def __init__(self, dataset: Any, cache: Cache, is_stacked: bool) -> None:
        """`is_stacked`: torch's own function makes batches of the items, and they are new tensors.
        Nobody sees the items themselves then, and copying each first would take most of the time.
        """
        self._dataset, self._cache = dataset, cache
        self._is_stacked = is_stacked

    def __getitem__(self, index: Any) -> Any:
        return self._cache.item(index, self._dataset)

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        item, dataset, is_stacked = self._cache.item, self._dataset, self._is_stacked
        return [item(index, dataset, is_stacked) for index in indices]
