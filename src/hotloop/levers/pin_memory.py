"""Batches are loaded into page-locked memory, and copied to the GPU while the CPU goes on.

A copy from ordinary memory makes the CPU wait, and goes through a buffer of the driver's. Only
batches that come from a pinning loader are copied without waiting: memory that the script has
pinned itself, it may be about to fill again.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import Effect, Expectation, Group, Lever, Receipt, Seen, refuse
from hotloop.levers.loader_workers import lives_on_device

if TYPE_CHECKING:
    from hotloop.seams import Seams

COPYING = 0.01
RECENT_BATCHES = 4
DEPTH = 4
"""How far inside a batch its tensors are looked for."""


@dataclass
class PinMemory(Lever):
    name = "pin_memory"
    summary = "batches in page-locked memory, copied to the GPU without waiting"
    group = Group.DATA
    effect = Effect.SAME_MATH
    not_for_memory = "page-locked copies of batches take memory"

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._reasons: list[str] = []
        self._changed: weakref.WeakSet[Any] = weakref.WeakSet()
        self._ours: weakref.WeakSet[Any] = weakref.WeakSet()
        self._recent: deque[tuple[bool, set[int]]] = deque(maxlen=RECENT_BATCHES)
        self._loaders = self._moved = self._already = 0

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        loader, share = seen.loader, seen.share("copy")
        if seen.measurement.software.device == "cpu":
            return refuse("there is nothing to copy on a CPU")
        if loader is None:
            return refuse("the script has no loader")
        if share < COPYING:
            return refuse(f"the job copies to the GPU during {share:.1%} of a step")
        return Expectation(share)

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch = torch
        seams.loader_built.before.append(self._build)
        seams.loader.after.append(self._begin)
        seams.batch.after.append(self._deliver)
        seams.move.before.append(self._move)

    def receipt(self) -> Receipt:
        if self._moved:
            return self.applied(loaders=self._loaders, copies=self._moved)
        if self._already:
            return self.not_applied(
                "the script already pins its batches and copies them without waiting"
            )
        if self._loaders:
            return self.not_applied("no batch of the loader it changed was copied to a GPU")
        return self.not_applied(self._reasons[0] if self._reasons else "the script has no loader")

    def _build(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        loader, dataset = args[0], kwargs.get("dataset")
        if kwargs.get("pin_memory"):
            if any(getattr(known, "dataset", None) is dataset for known in self._changed):
                self._changed.add(loader)  # a library builds a loader again from ours
            self._reasons.append("no pinned batch of the script's loader was copied to a GPU")
        elif reason := obstacle(self._torch, dataset):
            self._reasons.append(reason)
        else:
            kwargs["pin_memory"] = True
            self._changed.add(loader)
            self._loaders += 1

    def _begin(self, args: tuple[Any, ...], iterator: Any, began: int) -> None:
        if args[0] in self._changed and iterator is not None:
            self._ours.add(iterator)

    def _deliver(self, args: tuple[Any, ...], batch: Any, began: int) -> None:
        if batch is not None and getattr(args[0], "_pin_memory", False):
            memory = {_memory(tensor) for tensor in tensors(self._torch, batch)}
            self._recent.append((args[0] in self._ours, memory))

    def _move(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        tensor = args[0]
        if tensor.layout is not self._torch.strided or any(isinstance(a, bool) for a in args):
            return  # non_blocking was given, by position
        address = _memory(tensor)
        found = [is_ours for is_ours, memory in self._recent if address in memory]
        if not found or not tensor.is_pinned():
            return
        if kwargs.get("non_blocking") and not any(found):
            self._already += 1
        else:
            kwargs["non_blocking"] = True
            self._moved += 1


def obstacle(torch: Any, dataset: Any) -> str:
    """Why a dataset's batches are not pinned; empty when they can be."""
    # Counting devices does not initialise the driver, which a later fork would not survive.
    if torch.cuda.device_count() == 0:
        return "there is no GPU to copy to"
    if lives_on_device(torch, dataset):
        return "the dataset lives on the GPU already"
    return ""


def _memory(tensor: Any) -> int:
    """The same for a tensor and its views."""
    return int(tensor.untyped_storage().data_ptr())


def tensors(torch: Any, batch: Any, depth: int = DEPTH) -> Iterator[Any]:
    """Those that a batch consists of, however the script puts batches together."""
    if isinstance(batch, torch.Tensor):
        if batch.layout is torch.strided:
            yield batch
        return
    if not isinstance(batch, list | tuple):
        batch = (batch if isinstance(batch, Mapping) else getattr(batch, "__dict__", {})).values()
    for part in batch if depth else ():
        yield from tensors(torch, part, depth - 1)
