"""The next batch is copied to the GPU beside what it computes, and is there when it is asked for.

The script is handed its batch on the host, as ever. Only when it moves a tensor of it, the way it
moved those before, it is given the copy that is under way. A batch that a worker has ready is
copied while the GPU still computes on the one before, without being taken from the loader.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import Effect, Expectation, Group, Lever, Receipt, Seen, refuse
from hotloop.levers.pin_memory import COPYING, obstacle, tensors
from hotloop.levers.prefetching import Call, Copier, CudaCopier, Flight, Habit, Source, waiting

if TYPE_CHECKING:
    from hotloop.seams import Seams

COPY = "Memcpy HtoD"
"""As the GPU's record names it."""


@dataclass
class DevicePrefetch(Lever):
    name = "device_prefetch"
    summary = "the next batch is copied to the GPU while it still computes"
    group = Group.DATA
    effect = Effect.SAME_MATH
    not_for_memory = "the batch that is copied ahead takes memory"

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._copier: Any = None
        self._thread = threading.get_ident()
        self._sources: weakref.WeakKeyDictionary[Any, Source] = weakref.WeakKeyDictionary()
        """Of loaders, and of their iterators."""
        self._latest: Any = lambda: None
        """The iterator that the last batch came from."""
        self._learning: tuple[Any, Habit] | None = None
        self._problem = ""
        self._reasons: list[str] = []
        self._pinned = self._moved = self._copies = self._bytes = self._ahead = self._dropped = 0

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        if seen.measurement.software.device == "cpu":
            return refuse("there is nothing to copy on a CPU")
        if seen.loader is None:
            return refuse("the script has no loader")
        share = max(seen.share("copy"), _copying(seen))
        if not share:
            return refuse("the job copies no batch to the GPU")
        if share < COPYING:
            return refuse(f"the job copies to the GPU during {share:.1%} of a step")
        return Expectation(min(share, 1.0))

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch, self._copier = torch, self.copier(torch)
        seams.loader_built.before.append(self._build)
        seams.loader.after.append(self._begin)
        seams.batch.after.append(self._deliver)
        seams.move.before.append(self._move)
        seams.move.after.append(self._has_moved)
        seams.backward.after.append(self._look_ahead)

    def copier(self, torch: Any) -> Copier:
        return CudaCopier(torch)

    def receipt(self) -> Receipt:
        if self._problem:
            return self.not_applied(self._problem)
        if self._copies:
            return self.applied(
                copies=self._copies,
                bytes=self._bytes,
                begun_while_computing=self._ahead,
                dropped=self._dropped,
            )
        if self._dropped:
            return self.not_applied("what the script moved was never what had been copied")
        if self._moved:
            return self.not_applied("no tensor of the batches was moved the same way twice")
        if self._pinned:
            return self.not_applied("no batch of the script's loader was copied to a GPU")
        return self.not_applied(self._reasons[0] if self._reasons else "the script has no loader")

    def _build(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """From ordinary memory nothing can be copied beside the rest."""
        if not kwargs.get("pin_memory"):
            if reason := obstacle(self._torch, kwargs.get("dataset")):
                self._reasons.append(reason)
                return
            kwargs["pin_memory"] = True
        self._pinned += 1

    def _begin(self, args: tuple[Any, ...], iterator: Any, began: int) -> None:
        """What was learned of a loader holds for its next pass."""
        source = self._sources.setdefault(args[0], Source())
        self._dropped += source.give_up()
        if iterator is not None and getattr(iterator, "_pin_memory", False):
            self._sources[iterator] = source

    def _deliver(self, args: tuple[Any, ...], batch: Any, began: int) -> None:
        source = self._sources.get(args[0])
        if batch is not None and source is not None and self._is_here():
            self._latest = weakref.ref(args[0])
            parts = list(tensors(self._torch, batch))
            self._dropped += source.deliver(parts)
            self._copy(source, parts)

    def _look_ahead(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        """The GPU has its work queued: the time to copy what it will need next."""
        iterator = self._latest()
        source = self._source(iterator)
        if source is not None and source.habits and self._is_here():
            batch = waiting(iterator)
            if batch is not None:
                self._ahead += self._copy(source, list(tensors(self._torch, batch)))

    def _copy(self, source: Source, parts: Sequence[Any]) -> int:
        """How many copies were begun."""
        found: dict[Any, list[tuple[int, Any, Habit]]] = {}
        for place, tensor, habit in source.worth_copying(parts):
            if self._may_be_copied(tensor, habit):
                found.setdefault(habit.device, []).append((place, tensor, habit))
        return sum(self._fly(source, device, those) for device, those in found.items())

    def _may_be_copied(self, tensor: Any, habit: Habit) -> bool:
        if self._problem or tensor.requires_grad or tensor.is_inference():
            return False
        return self._leads_to(habit.device, habit.call) and bool(tensor.is_pinned())

    def _fly(self, source: Source, device: Any, those: list[tuple[int, Any, Habit]]) -> int:
        try:
            calls = [partial(habit.call, tensor) for _, tensor, habit in those]
            copies, done = self._copier.begin(device, calls)
        except self._torch.OutOfMemoryError:
            self._problem = "there is no memory for a second batch on the GPU"
            return 0
        for (place, tensor, habit), copy in zip(those, copies, strict=True):
            flight = Flight(tensor, tensor._version, place, habit.call, copy, done)
            source.flights[id(tensor)] = flight
        return len(copies)

    def _move(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._learning = None
        source = self._source(self._latest())
        if source is None or not self._is_here():
            return
        call = _call(self._torch, args[1:], kwargs)
        habit, flight = source.move(args[0], call)
        self._moved += habit is not None
        if habit is not None:
            self._learning = args[0], habit
        if flight is not None and flight.call == call and self._is_true(flight):
            self._copier.hand_over(flight.copy, flight.done)
            kwargs["by"] = lambda *args, **kwargs: flight.copy
            self._copies += 1
            self._bytes += flight.copy.nbytes
        elif flight is not None:
            self._dropped += 1
            source.in_vain[flight.place] += 1

    def _has_moved(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        if self._learning is not None and self._learning[0] is args[0]:
            habit, self._learning = self._learning[1], None
            habit.device = result.device if result is not None and result.is_cuda else None

    def _is_true(self, flight: Flight) -> bool:
        """Whether the script's own call would return the same now."""
        tensor, torch = flight.tensor, self._torch
        if torch.cuda.is_current_stream_capturing():
            return False  # a graph cannot wait for what was begun outside it
        if tensor._version != flight.version or tensor.requires_grad:
            return False
        if flight.copy.is_inference() != torch.is_inference_mode_enabled():
            return False
        return self._leads_to(flight.copy.device, flight.call)

    def _leads_to(self, device: Any, call: Call) -> bool:
        """Without a number it is the current device that is meant."""
        target = call.args[0] if call.args else dict(call.kwargs).get("device")
        numbered = isinstance(target, int) or any(c.isdigit() for c in str(target))
        return numbered or bool(device.index == self._torch.cuda.current_device())

    def _source(self, iterator: Any) -> Source | None:
        return None if iterator is None else self._sources.get(iterator)

    def _is_here(self) -> bool:
        """A thread of the script's own may draw ahead, in an order that nobody knows."""
        return threading.get_ident() == self._thread


def _call(torch: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
    """None of one that says by position whether it waits, or names a tensor instead of a device."""
    plain = (str, int, torch.device, torch.dtype, torch.memory_format)
    named = {key: kwargs[key] for key in sorted(kwargs) if key not in ("by", "non_blocking")}
    for value in (*args, *named.values()):
        if value is not None and not isinstance(value, plain):
            return None
    if any(isinstance(value, bool) for value in args):
        return None
    return Call(kwargs["by"], args, tuple(named.items()))


def _copying(seen: Seen) -> float:
    """The share of a step that the GPU itself spends on copies, by its record."""
    kernels = seen.inspection.kernels if seen.inspection else None
    if kernels is None or not kernels.steps:
        return 0.0
    pairs = zip(kernels.name, kernels.duration_ns, strict=True)
    spent = sum(took for name, took in pairs if COPY in kernels.names[name])
    return spent / 1e9 / kernels.steps / seen.figures.step.mean
