"""How long a step takes when a loader keeps its workers from one pass to the next.

Starting workers costs more than the start: the pages of a process that has just forked are copied
as it writes to them, and workers that end and begin take cores from it. How much cannot be
computed, only tried. So for a few short passes the loader is told to keep its workers.
"""

from __future__ import annotations

import weakref
from time import perf_counter
from typing import Any

from hotloop.seams import Seams

SETTING = "persistent_workers"


class KeepingProbe:
    """Of a job with one such loader: with several, nobody knows whose start a step waits for."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        """One entry a pass: of one of its steps, on average, end to end."""
        self._loaders: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        """Passes that each has begun."""
        self._on = False
        self._passes = 0
        self._steps = 0
        self._since = 0.0

    def attach(self, seams: Seams) -> None:
        seams.loader.before.append(lambda args, kwargs: self._begin_pass(args[0]))

    @property
    def is_worth_it(self) -> bool:
        """Whether passes are so short that several were seen."""
        return len(self._loaders) == 1 and max(self._loaders.values()) > 1

    def forget(self) -> None:
        """Passes that were begun so far: from here on they are counted."""
        self._loaders.clear()

    def begin(self) -> None:
        self._on, self._passes = True, 0

    def end(self) -> None:
        self._on = False

    def stepped(self) -> None:
        self._steps += 1

    def _begin_pass(self, loader: Any) -> None:
        if not self._on:
            if getattr(loader, "num_workers", 0) and not getattr(loader, SETTING, True):
                self._loaders[loader] = self._loaders.get(loader, 0) + 1
            return
        if loader not in self._loaders:
            return
        now = perf_counter()
        # The first pass starts the workers that are kept.
        if self._passes > 1 and self._steps:
            self.seconds.append((now - self._since) / self._steps)
        vars(loader)[SETTING] = True  # a loader refuses to be told so in the usual way
        self._passes, self._steps, self._since = self._passes + 1, 0, now
