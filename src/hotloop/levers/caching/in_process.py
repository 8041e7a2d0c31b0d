"""Small batches of kept items are read by the job itself, though its loader has workers.

Reading one takes less than taking it over from a worker, whose threads in the job's process hold
up the launching of kernels. Random numbers are drawn as if there were workers: a sampler is asked
some batches ahead, and an iterator that would keep its workers is kept as well.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any

from hotloop.levers.caching.filling import Filled

MOST_BYTES = 2**20
"""Of a batch. Larger ones workers copy beside the training."""


class InProcess:
    """The iterators that do so. Their loaders are changed only while they make them."""

    def __init__(self) -> None:
        self._iterators: weakref.WeakSet[Any] = weakref.WeakSet()
        self._workers = 0

    def __contains__(self, iterator: Any) -> bool:
        return iterator in self._iterators

    def evidence(self) -> dict[str, int]:
        return {"workers_spared": self._workers} if self._workers else {}

    def begin(self, torch: Any, loader: Any, filled: Filled) -> None:
        """A loader is about to make an iterator, if it has none that lives on."""
        loading = torch.utils.data.dataloader
        is_plain = type(loader)._get_iterator is loading.DataLoader._get_iterator
        if is_plain and loader.num_workers and not loader.timeout and _are_small(loader, filled):
            make = loading._SingleProcessDataLoaderIter
            loader._get_iterator = lambda: self._made(make, loader)

    def end(self, loader: Any, iterator: Any) -> None:
        """A pass has begun, or failed to."""
        vars(loader).pop("_get_iterator", None)
        if iterator in self._iterators:
            ahead = loader.num_workers * (loader.prefetch_factor or 2)
            iterator._sampler_iter = _Ahead(iterator._sampler_iter, ahead)

    def _made(self, make: Any, loader: Any) -> Any:
        workers, loader.num_workers = loader.num_workers, 0
        try:
            iterator = make(loader)
        finally:
            loader.num_workers = workers
        self._iterators.add(iterator)
        self._workers = max(self._workers, workers)
        return iterator


class _Ahead:
    """The sampler is asked when it would be with workers, who are given what to load in advance."""

    def __init__(self, numbers: Iterator[Any], count: int) -> None:
        self._numbers = numbers
        self._waiting = deque(islice(numbers, count))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self._waiting:
            raise StopIteration
        next_one = self._waiting.popleft()
        self._waiting.extend(islice(self._numbers, 1))
        return next_one


def _are_small(loader: Any, filled: Filled) -> bool:
    size = loader.batch_size or getattr(loader.batch_sampler, "batch_size", None)
    if filled.shelf.columns is None or not isinstance(size, int):
        return False
    return size * filled.bytes / len(filled.shelf) <= MOST_BYTES
