"""Items of a dataset are computed once and kept in the host's memory.

Only where they are shown to be the same every time: no random generator may move while all of them
are drawn, and no attribute of the dataset may change, then or later. The loader, its sampler, its
workers and the dataset that the script sees stay as they are; only where a loader would ask the
dataset for an item, it finds a copy of the one that is kept.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import Effect, Expectation, Group, Lever, Receipt, Seen, refuse
from hotloop.levers.caching import host_memory
from hotloop.levers.caching.cache import ANEW, Cache
from hotloop.levers.caching.filling import MOST_PROCESSES, Filled, Limits, fill
from hotloop.levers.caching.in_process import InProcess
from hotloop.levers.caching.kept_items import Unfit
from hotloop.levers.caching.obstacles import IN_MEMORY, obstacle
from hotloop.levers.caching.serving import Batches, View
from hotloop.levers.waiting import needless

if TYPE_CHECKING:
    from hotloop.measurement import LoaderSeen
    from hotloop.seams import Seams

FILL_SECONDS = 60


@dataclass
class CacheDataset(Lever):
    name = "cache_dataset"
    summary = "items that never change are computed once and kept in memory"
    group = Group.DATA
    effect = Effect.SAME_MATH
    not_for_memory = "the items that it keeps take memory"

    fill_seconds: int = FILL_SECONDS
    """The most that filling may take, for each dataset."""
    memory_share: float = 0.3
    """Of the memory that the host has left, for each dataset."""

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._ways_to_stack: dict[Any, Any] = {}
        """As torch has them. A script may add others, or change these."""
        self._caches: list[Cache] = []
        self._in_process = InProcess()
        self._serving: weakref.WeakKeyDictionary[Any, Cache] = weakref.WeakKeyDictionary()
        self._datasets = self._items = self._bytes = 0
        self._seconds = 0.0

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        if reason := needless(seen):
            return refuse(reason)
        loader, share = seen.loader, seen.share("data")
        assert loader is not None
        if loader.samples is None:
            return refuse("the dataset's items cannot be asked for by number")
        if loader.dataset in IN_MEMORY:
            return refuse("the dataset's items lie in memory already")
        # Workers load more than is waited for; but filling, too, takes as many cores as there are.
        every = _batches(loader) * share / seen.figures.batches_per_second
        seconds = every / min(seen.cores, MOST_PROCESSES)
        if seconds > FILL_SECONDS:
            return refuse(f"filling the cache would take {seconds:.0f} s at the least")
        return Expectation(share)

    def problem(self) -> str:
        if not 0 < self.memory_share <= 0.9:
            return f"memory_share must be above 0 and at most 0.9, not {self.memory_share}"
        return "" if self.fill_seconds > 0 else "fill_seconds must be above 0"

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch = torch
        self._ways_to_stack = dict(torch.utils.data._utils.collate.default_collate_fn_map)
        seams.loader.before.append(self._open)
        seams.loader.after.append(self._begin)
        seams.batch.before.append(self._ask)
        seams.batch.after.append(self._deliver)

    def receipt(self) -> Receipt:
        if batches := sum(cache.batches for cache in self._caches):
            receipt = self.applied(
                datasets=self._datasets,
                items=self._items,
                bytes=self._bytes,
                fill_seconds=round(self._seconds, 3),
                batches=batches,
                **self._in_process.evidence(),
            )
            return replace(receipt, once_seconds=self._seconds)
        reasons = [cache.reason for cache in self._caches if cache.reason]
        if self._caches:
            return self.not_applied(reasons[0] if reasons else "no batch came from what is kept")
        return self.not_applied("the script has no loader")

    def _open(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        loader = args[0]
        cache = self._of(loader.dataset)
        if cache is None:
            cache = self._made(loader)
            self._caches.append(cache)
        elif getattr(loader, "_iterator", None) is None:  # workers that live on know no change
            cache.look(thoroughly=True)
        if cache.filled:
            cache.passes += 1
            self._fetcher().__init__ = self._fetch_from_views(loader)
            if self._are_torchs(loader.collate_fn):
                self._in_process.begin(self._torch, loader, cache.filled)

    def _begin(self, args: tuple[Any, ...], iterator: Any, began: int) -> None:
        fetcher = self._fetcher()
        if "__init__" in vars(fetcher):
            del fetcher.__init__  # workers that were forked meanwhile keep it
        self._in_process.end(args[0], iterator)
        cache = self._of(args[0].dataset)
        if iterator is not None and cache is not None and cache.filled:
            self._serving.setdefault(iterator, cache)

    def _ask(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        cache = self._serving.get(args[0])
        if cache is not None and not args[0]._num_workers and args[0] not in self._in_process:
            cache.look(thoroughly=False)

    def _deliver(self, args: tuple[Any, ...], batch: Any, began: int) -> None:
        cache = self._serving.get(args[0])
        if batch is not None and cache is not None and cache.is_complete:
            cache.batches += 1

    def _of(self, dataset: Any) -> Cache | None:
        return next((one for one in self._caches if one.dataset() is dataset), None)

    def _made(self, loader: Any) -> Cache:
        torch, dataset = self._torch, loader.dataset
        try:
            anew = any(one.kind is type(dataset) and one.reason == ANEW for one in self._caches)
            if reason := ANEW if anew else obstacle(torch, loader):
                raise Unfit(reason)
            left = host_memory.available() or 0
            limits = Limits(self.fill_seconds, self.memory_share * left, loader.num_workers)
            return Cache(torch, dataset, self._count(fill(torch, dataset, limits)))
        except Unfit as unfit:
            return Cache(torch, dataset, None, str(unfit))
        except Exception as error:  # a dataset's own attributes may raise what they like
            return Cache(
                torch, dataset, None, f"the dataset cannot be looked into: {type(error).__name__}"
            )

    def _count(self, filled: Filled) -> Filled:
        self._datasets += 1
        self._items += len(filled.shelf)
        self._bytes += filled.bytes
        self._seconds += filled.seconds
        return filled

    def _fetcher(self) -> Any:
        """Where loaders ask for items. What the script sees of a loader stays as it is."""
        return self._torch.utils.data._utils.fetch._MapDatasetFetcher

    def _are_torchs(self, collate: Any) -> bool:
        collating = self._torch.utils.data._utils.collate
        are_plain = collating.default_collate_fn_map == self._ways_to_stack
        return are_plain and collate is collating.default_collate

    def _fetch_from_views(self, loader: Any) -> Any:
        plain, has_workers = self._fetcher().__init__, loader.num_workers > 0

        def init(fetcher: Any, *args: Any, **kwargs: Any) -> None:
            plain(fetcher, *args, **kwargs)
            cache = self._of(fetcher.dataset)
            if cache is None or not cache.filled:
                return
            view = View(fetcher.dataset, cache, has_workers)
            if fetcher.auto_collation and self._are_torchs(fetcher.collate_fn):
                view = batches = Batches(self._torch, fetcher.dataset, cache, has_workers)
                fetcher.collate_fn = batches.collated
            fetcher.dataset = view

        return init


def _batches(loader: LoaderSeen) -> float:
    """That hold every item once: a sampler may draw each of them many times in a pass."""
    if loader.samples and loader.batch_size:
        return loader.samples / loader.batch_size
    return loader.batches or 0
