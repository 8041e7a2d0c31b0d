"""Passes over loaders cut short: their first batches, and then their own last one.

The order is cut where a loader draws it, in the job's own process: so it holds with workers too,
and with workers that outlive a pass. How long a loader says it is stays as it was, for scripts that
plan by it. An iterable dataset makes its own order, and is left alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

from hotloop.runtime.patches import Patches

PATIENCE = 5.0
"""Seconds to look for the last batch of a loader that may have none."""


class Order:
    """What a loader draws its batches from, cut to so many."""

    def __init__(self, whole: Any, batches: int) -> None:
        self._whole = whole
        self._batches = batches

    def __len__(self) -> int:
        return len(self._whole)

    def __iter__(self) -> Iterator[Any]:
        drawn = iter(self._whole)
        yield from islice(drawn, self._batches - 1)
        last: list[Any] = []
        until = time.monotonic() + PATIENCE
        for batch in drawn:
            last = [batch]
            if time.monotonic() > until:
                break  # of an endless one: what was reached has to do
        yield from last


def cut_passes(torch: Any, patches: Patches, batches: int) -> None:
    """From now on, for every loader that draws from an order."""
    loader = torch.utils.data.DataLoader
    whole = loader._index_sampler.fget

    def _index_sampler(made: Any) -> Any:
        order = whole(made)
        return Order(order, batches) if has_order(torch, made) else order

    patches.replace(loader, "_index_sampler", property(_index_sampler))


def has_order(torch: Any, loader: Any) -> bool:
    return not isinstance(loader.dataset, torch.utils.data.IterableDataset)
