"""What happens inside a loader: how long each item takes, and putting a batch together.

In the job's own process, and in the workers it forks: each of those leaves what it saw in a file,
again and again, since it is not told when it will be ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from operator import getitem
from pathlib import Path
from time import monotonic, perf_counter, thread_time
from typing import Any

from hotloop.inspection import Frame, LoaderLook, Samples
from hotloop.levers.caching.constancy import Generators
from hotloop.runtime.look.occupation import Occupation
from hotloop.runtime.look.sampler import Sampler
from hotloop.runtime.patches import Patches
from hotloop.seams import Seams

EVERY_SECONDS = 0.5
MOST_OF_THE_TIME = 0.02
"""That leaving what was seen may take: there is more of it every time."""
MOST_ITEMS = 5_000
WATCHED = 1
"""Batches of each process whose items are seen to draw random numbers, or not."""


class LoaderProbe:
    def __init__(self, torch: Any, folder: Path) -> None:
        self._torch = torch
        self._folder = folder
        self._pid = os.getpid()
        self._occupation = Occupation()
        self._look = LoaderLook(worker=None)
        self._own: dict[int | None, LoaderLook] = {None: self._look}
        """Of this process, by the loader."""
        self._passes: list[int | None] = []
        """Which loader each is over: a worker knows only how many had begun when it was started."""
        self._begun: list[int] = []
        self._number_of: Callable[[Any], int] | None = None
        self._sampler: Sampler | None = None
        """Of a worker."""
        self._next = 0.0
        self._was_held = False
        """While the item or the batch was made that is under way."""
        self.rests = False
        """Nobody is watched then: neither this process, nor workers that it starts meanwhile."""

    def attach(self, patches: Patches) -> None:
        fetch = self._torch.utils.data._utils.fetch
        for kind, watched in (
            (fetch._MapDatasetFetcher, self._of_map()),
            (fetch._IterableDatasetFetcher, self._of_iterable()),
        ):
            patches.replace(kind, "fetch", self._unless_at_rest(kind.fetch, watched))

    def tell_apart(self, seams: Seams, number_of: Callable[[Any], int]) -> None:
        """One loader from another: an evaluation's batches are others than the training's."""
        self._number_of = number_of
        seams.loader.before.append(self._begin)
        seams.loader.after.append(self._has_begun)
        seams.batch.before.append(self._draw)

    def _begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._begun.append(len(self._passes))
        self._passes.append(None)

    def _has_begun(self, args: tuple[Any, ...], iterator: Any, began: int) -> None:
        if self._begun and self._number_of is not None:
            self._passes[self._begun.pop()] = self._number_of(args[0])

    def _draw(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if os.getpid() == self._pid and self._sampler is None:
            number = getattr(args[0], "_hotloop_loader", None)
            self._look = self._own.setdefault(number, LoaderLook(worker=None, loader=number))

    def _unless_at_rest(self, plain: Any, watched: Any) -> Any:
        def fetch(fetcher: Any, index: Any) -> Any:
            return plain(fetcher, index) if self.rests else watched(fetcher, index)

        return fetch

    def looks(self) -> list[LoaderLook]:
        """Of this process and of the workers that left something."""
        own = [look for look in self._own.values() if look.batch_items]
        left = [look for path in self._files() if (look := _read(path)) is not None]
        return own + [replace(look, loader=self._passed_over(look.loader)) for look in left]

    def _passed_over(self, begun: int | None) -> int | None:
        return None if begun is None else self._passes[begun]

    @property
    def has_workers(self) -> bool:
        """Whether one has left something."""
        return bool(self._files())

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("loader-*.json"))

    def _of_map(self) -> Any:
        def fetch(fetcher: Any, index: Any) -> Any:
            dataset = fetcher.dataset
            self._enter_worker()
            with self._watched(dataset):
                if not fetcher.auto_collation:
                    items = [self._timed(getitem, dataset, index)]
                elif getattr(dataset, "__getitems__", None):
                    items = self._timed(dataset.__getitems__, index)
                else:
                    items = [self._timed(getitem, dataset, one) for one in index]
            return self._batch(fetcher, items)

        return fetch

    @contextlib.contextmanager
    def _watched(self, dataset: Any) -> Iterator[None]:
        before = self._states(dataset) if len(self._look.draws) < WATCHED else None
        yield
        if before is not None:
            self._look.draws.append(self._states(dataset) != before)

    def _states(self, dataset: Any) -> list[Any] | None:
        try:
            return Generators(self._torch, dataset).states()
        except Exception:  # what the script put into it may raise what it likes
            return None

    def _of_iterable(self) -> Any:
        def fetch(fetcher: Any, index: Any) -> Any:
            if fetcher.ended:
                raise StopIteration
            if not fetcher.auto_collation:
                return self._batch(fetcher, [self._timed(next, fetcher.dataset_iter)])
            items: list[Any] = []
            with contextlib.suppress(StopIteration):
                while len(items) < len(index):
                    items.append(self._timed(next, fetcher.dataset_iter))
            fetcher.ended = len(items) < len(index)
            if not items or (fetcher.drop_last and fetcher.ended):
                raise StopIteration
            return self._batch(fetcher, items)

        return fetch

    def _timed(self, get: Any, *args: Any) -> Any:
        self._enter_worker()
        began, busy, queued = perf_counter(), thread_time(), self._occupation.queued()
        item = get(*args)
        if len(self._look.item_seconds) < MOST_ITEMS:
            took, waited = perf_counter() - began, self._occupation.queued() - queued
            occupied = thread_time() - busy + waited
            self._look.item_seconds.append(occupied if self._was_held else took)
            self._look.item_cpu_seconds.append(occupied)
            self._look.item_queued_seconds.append(waited)
        self._was_held = False
        return item

    def _batch(self, fetcher: Any, items: list[Any]) -> Any:
        began, busy, queued = perf_counter(), thread_time(), self._occupation.queued()
        batch = fetcher.collate_fn(items if fetcher.auto_collation else items[0])
        if len(self._look.collate_seconds) < MOST_ITEMS:
            took, waited = perf_counter() - began, self._occupation.queued() - queued
            occupied = thread_time() - busy + waited
            self._look.collate_seconds.append(occupied if self._was_held else took)
            self._look.collate_queued_seconds.append(waited)
            self._look.batch_items.append(len(items))
        self._was_held = False
        if self._sampler is not None and monotonic() > self._next:
            self._leave(self._sampler)
        return batch

    def _enter_worker(self) -> None:
        """At a worker's first item: nothing that its parent saw belongs to it."""
        if os.getpid() == self._pid:
            return
        self._pid = os.getpid()
        self._occupation = Occupation()
        info = self._torch.utils.data.get_worker_info()
        begun = self._begun[-1] if self._begun else None
        self._look = LoaderLook(worker=info.id if info else -1, loader=begun)
        self._sampler = Sampler()
        self._sampler.start()
        with contextlib.suppress(ValueError):  # not the worker's first thread
            signal.signal(signal.SIGCONT, self._goes_on)
            signal.siginterrupt(signal.SIGCONT, False)

    def _goes_on(self, number: int, frame: Any) -> None:
        """It was held, by us, to see a step without it: that is no part of what an item takes."""
        self._was_held = True

    def _leave(self, sampler: Sampler) -> None:
        began = monotonic()
        told = asdict(self._look) | {"samples": asdict(sampler.by_stack())}
        path = self._folder / f"loader-{self._pid}.json"
        partial = path.with_suffix(".partial")
        with contextlib.suppress(OSError):
            partial.write_text(json.dumps(told), encoding="utf-8")
            partial.replace(path)
        took = monotonic() - began
        self._next = monotonic() + max(EVERY_SECONDS, took / MOST_OF_THE_TIME)


def _read(path: Path) -> LoaderLook | None:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        frames = [Frame(**frame) for frame in told["samples"].pop("frames")]
        return LoaderLook(**{**told, "samples": Samples(frames=frames, **told["samples"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None
