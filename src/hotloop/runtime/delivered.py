"""What loaders deliver in the first passes of a soak, by checksum.

What is kept from pass to pass may be what has changed: a dataset may depend on the epoch, the time
or a file. To compare two runs, chance is taken out of both, as far as data is concerned: seeds are
fixed, items draw by their index, and each pass begins with random numbers of its own, however many
a compiled model has drawn before it.
"""

from __future__ import annotations

import zlib
from collections import Counter
from threading import get_ident
from typing import Any

from hotloop.evidence import Delivered
from hotloop.runtime.exam import randomness
from hotloop.runtime.exam.checksums import checksum
from hotloop.runtime.patches import Patches
from hotloop.runtime.probes.clock import Numbers
from hotloop.seams import Seams

PASSES = 2
MOST = 32
"""Batches of a pass that is not cut."""


class DeliveredProbe:
    def __init__(self, torch: Any, numbers: dict[str, Numbers], patches: Patches) -> None:
        self.delivered: list[Delivered] = []
        self._torch = torch
        self._loaders = numbers["loader"]
        self._thread = get_ident()
        self._begun: Counter[int] = Counter()
        self._drawn: Counter[tuple[int, int]] = Counter()
        """Batches of each loader in each pass."""
        randomness.pin_data(torch, 0, patches.replace)

    def attach(self, seams: Seams) -> None:
        # First of all: an optimisation may draw what torch would have drawn without it.
        seams.loader.before.insert(0, self._begin)
        seams.batch.after.append(self._draw)

    def is_whole(self, loader: int | None, number: int) -> bool:
        """Whether as much was drawn in this pass as in the first."""
        return loader is None or self._drawn[loader, number] >= self._drawn[loader, 1]

    def _begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        loader = self._loaders.of(args[0])
        self._begun[loader] += 1
        place = f"loader {loader}, pass {self._begun[loader]}"
        randomness.seed(self._torch, randomness.SEED + zlib.crc32(place.encode()))

    def _draw(self, args: tuple[Any, ...], batch: Any, began: int) -> None:
        """How far a thread that loads ahead has come is chance."""
        loader = getattr(args[0], "_hotloop_loader", None)
        if loader is None or batch is None or get_ident() != self._thread:
            return
        number = self._begun[loader]
        self._drawn[loader, number] += 1
        if number <= PASSES and self._drawn[loader, number] <= MOST:
            seen = Delivered(loader, number, checksum(self._torch, batch))
            self.delivered.append(seen)
