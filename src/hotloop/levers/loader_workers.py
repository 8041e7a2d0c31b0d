"""Loads batches in processes of their own, while the model trains on the batch before.

The order and the content of the batches stay as they are: the sampler runs in the job's own
process, and draws the same random numbers. A dataset that draws random numbers itself draws others
in a worker. Workers are only ever added, and started the way the job starts its processes. They
outlive a pass for as long as the script leaves alone what they have a copy of.
"""

from __future__ import annotations

import multiprocessing
import re
import sys
import weakref
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import Effect, Expectation, Group, Lever, Receipt, Seen, counted, refuse
from hotloop.levers.caching.constancy import Likeness
from hotloop.levers.waiting import needless

if TYPE_CHECKING:
    from hotloop.measurement import LoaderSeen
    from hotloop.seams import Seams

MOST_WORKERS = 256
USUAL_WORKERS = 16
"""More of them seldom help one loop, and each takes memory."""
SHORT_PASS = 60.0
"""Seconds. Starting workers, which takes less than one, is next to nothing of a longer pass."""
LOOKS = 32


@dataclass
class LoaderWorkers(Lever):
    name = "loader_workers"
    summary = "batches are loaded by worker processes, ahead of the training"
    group = Group.DATA
    effect = Effect.SAME_MATH
    not_for_memory = "workers take memory of their own, and so do batches that wait"

    workers: int = 2
    prefetch: int = 2
    """Batches each worker is ahead."""
    persistent: bool = True
    """Workers outlive a pass over the data, unless the script changes the dataset after it."""

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._reasons: list[str] = []
        self._changed: weakref.WeakSet[Any] = weakref.WeakSet()
        self._kept: weakref.WeakSet[Any] = weakref.WeakSet()
        self._working: weakref.WeakSet[Any] = weakref.WeakSet()
        self._ended: weakref.WeakSet[Any] = weakref.WeakSet()
        self._copied: weakref.WeakKeyDictionary[Any, tuple[Likeness, ...]]
        self._copied = weakref.WeakKeyDictionary()
        """Of each iterator: what its workers had of the loader when they were started."""
        self._loaders = self._passes = self._processes = self._batches = 0

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        loader = seen.loader
        has = loader.workers if loader else 0
        usual = min(seen.cores, USUAL_WORKERS)
        counts = dict.fromkeys((usual, usual // 2, min(seen.cores, 2 * usual, MOST_WORKERS)))
        more = [{"workers": count} for count in counts if count > has]
        return more or [{"workers": min(has, MOST_WORKERS), "persistent": True}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        if reason := needless(seen):
            return refuse(reason)
        loader, share = seen.loader, seen.share("data")
        assert loader is not None
        if loader.samples is None:
            return refuse("the dataset's items cannot be asked for by number")
        if loader.workers >= seen.cores and not _restarts(seen, loader):
            on = counted(seen.cores, "core")
            return refuse(f"the loader already has {counted(loader.workers, 'worker')}, on {on}")
        return Expectation(share)

    def problem(self) -> str:
        if not 1 <= self.workers <= MOST_WORKERS:
            return f"workers must be from 1 to {MOST_WORKERS}, not {self.workers}"
        return "" if self.prefetch >= 1 else f"prefetch must be at least 1, not {self.prefetch}"

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch = torch
        seams.loader_built.before.append(self._build)
        seams.loader.before.append(self._rewind)
        seams.loader.after.append(self._begin)
        seams.batch.after.append(self._deliver)

    def receipt(self) -> Receipt:
        if self._batches:
            return self.applied(
                loaders=self._loaders, workers=self._processes, batches=self._batches
            )
        if self._passes:
            return self.not_applied("no batch came from a worker")
        if self._loaders:
            return self.not_applied("the loader it changed was never iterated")
        return self.not_applied(self._reasons[0] if self._reasons else "the script has no loader")

    def _build(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        loader, dataset = args[0], kwargs.get("dataset")
        ours = [known for known in self._changed if getattr(known, "dataset", None) is dataset]
        if ours and kwargs.get("num_workers") == self.workers:  # a library builds ours again
            self._changed.add(loader)
            if kwargs.get("persistent_workers") and self._kept.intersection(ours):
                self._kept.add(loader)
            return
        has = kwargs.get("num_workers") or 0
        keeps = self.persistent and not kwargs.get("persistent_workers")
        if reason := self._obstacle(dataset, has, keeps):
            self._reasons.append(reason)
            return
        if has < self.workers:
            kwargs["num_workers"] = self.workers
            kwargs["prefetch_factor"] = max(self.prefetch, kwargs.get("prefetch_factor") or 0)
        if keeps:
            kwargs["persistent_workers"] = True
            self._kept.add(loader)
        self._changed.add(loader)
        self._loaders += 1

    def _obstacle(self, dataset: Any, has: int, keeps: bool) -> str:
        if has >= self.workers and not keeps:
            return f"the loader already has {counted(has, 'worker')}"
        if isinstance(dataset, self._torch.utils.data.IterableDataset):
            return "the dataset is iterable: workers would hand out other batches, or all again"
        if lives_on_device(self._torch, dataset):
            return "the dataset lives on the GPU, which workers cannot share"
        if not has and (way := _start_method()) != "fork":
            return f"the script's processes start by {way}, which a script must be written for"
        return ""

    def _rewind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Persistent workers have one iterator. To the script it must look like a new one."""
        loader = args[0]
        iterator = getattr(loader, "_iterator", None)
        if iterator is None or loader not in self._kept:
            return
        # Held by the loader, by us and for the count: anybody else is still reading from it.
        is_read = iterator not in self._ended and sys.getrefcount(iterator) > 3
        if is_read or self._is_outdated(loader, iterator):
            loader._iterator = None
            return
        self._ended.discard(iterator)
        # The number a new iterator draws to seed its workers: the next shuffle depends on it.
        self._torch.empty((), dtype=self._torch.int64).random_(generator=loader.generator)

    def _is_outdated(self, loader: Any, iterator: Any) -> bool:
        """Whether workers that live on would not know what the script has changed since."""
        copied = self._copied.get(iterator)
        if copied is None:  # they could not be looked at
            return True
        return not all(was.holds(now) for was, now in zip(copied, _worked_by(loader), strict=True))

    def _begin(self, args: tuple[Any, ...], iterator: Any, began: int) -> None:
        loader, processes = args[0], len(getattr(iterator, "_workers", ()))
        if loader in self._kept and processes and iterator not in self._copied:
            with suppress(Exception):  # what a script's own objects raise when they are looked at
                looks = tuple(Likeness(self._torch, one) for one in _worked_by(loader))
                self._copied[iterator] = looks
        if loader in self._changed and iterator is not None:
            self._passes += 1
            self._processes = max(self._processes, processes)
            if processes:
                self._working.add(iterator)

    def _deliver(self, args: tuple[Any, ...], batch: Any, began: int) -> None:
        if batch is None:
            self._ended.add(args[0])
        elif args[0] in self._working:
            self._batches += 1


def _restarts(seen: Seen, loader: LoaderSeen) -> bool:
    """Whether its workers are started anew, pass by pass, so often that it may matter."""
    epoch = seen.figures.epoch_seconds
    return not loader.persistent and epoch is not None and epoch < SHORT_PASS


def _worked_by(loader: Any) -> tuple[Any, ...]:
    """What a worker has a copy of, as it was when the worker was started."""
    return loader.dataset, loader.collate_fn


def lives_on_device(torch: Any, thing: Any, depth: int = 4) -> bool:
    """Whether a dataset keeps tensors or a module on a device, or names one it would move to.

    Only a look at its first attributes and elements: an item is not drawn, that may be random.
    """
    if isinstance(thing, torch.Tensor | torch.device):
        return bool(getattr(thing, "device", thing).type != "cpu")
    if isinstance(thing, str):
        return re.fullmatch(r"cuda(:\d+)?", thing) is not None
    if isinstance(thing, torch.nn.Module):
        return any(p.device.type != "cpu" for p in islice(thing.parameters(), 1))
    if isinstance(thing, torch.utils.data.Dataset):
        thing = vars(thing)
    inner = thing.values() if isinstance(thing, dict) else thing
    if depth == 0 or not isinstance(thing, dict | list | tuple):
        return False
    return any(lives_on_device(torch, part, depth - 1) for part in islice(inner, LOOKS))


def _start_method() -> str:
    """Without fixing it, which would keep the script from choosing."""
    chosen = multiprocessing.get_start_method(allow_none=True)
    return chosen or multiprocessing.get_all_start_methods()[0]
