"""torch's allocator on the GPU in segments that can grow, instead of ones of a fixed size.

A block that fits into no segment needs a new one from the driver, and when the memory is full, all
that is kept unused goes back first, for which the GPU must be done. A segment that grows needs
neither, and leaves no holes. The allocator reads its settings when CUDA starts: they come as
variables, before the process does.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import Effect, Expectation, Group, Lever, Receipt, Seen, refuse

if TYPE_CHECKING:
    from hotloop.seams import Seams

VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
"""The older name, which every torch reads; and the newer. Which one wins depends on the setting."""
KEY = "expandable_segments"
OFTEN = 0.5
"""Segments asked of the driver in a step. A job in its stride needs none."""
A_CALL = 5e-3
"""Seconds for a segment, at most, the wait for the GPU included."""
MOST_OF_A_STEP = 0.5
FULL = 0.85
"""Of the GPU's memory. Before that nothing has to be given back."""
HOLES = 0.1
"""Of what is reserved: less in nobody's use is ordinary."""
IN_HOLES = 0.05
"""Of a step, where memory is short and full of holes and nobody looked closer. Assumed."""


@dataclass
class Allocator(Lever):
    name = "allocator"
    summary = "GPU memory in segments that grow, which leave no holes"
    group = Group.MEMORY
    effect = Effect.SAME_MATH
    not_for_memory = "what is allocated stays as much: it leaves fewer holes beside it"

    def __post_init__(self) -> None:
        self._torch: Any = None

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        if not seen.on_gpu:
            return refuse("it is for the memory of a GPU")
        if chosen := users_choice():
            return refuse(f"{chosen} already says whether segments grow")
        look = seen.inspection.allocator if seen.inspection else None
        steps = (look and look.steps) or (seen.inspection and seen.inspection.steps)
        if look and steps:
            calls = (look.driver_calls + look.retries) / steps
            if calls < OFTEN:
                return refuse(f"the driver is asked for memory {calls:.2g} times a step")
            return Expectation(min(calls * A_CALL / seen.figures.step.mean, MOST_OF_A_STEP))
        return _by_peaks(seen)

    def environment(self) -> dict[str, str]:
        """Added to what the user has set. Where they chose themselves, they are right."""
        if users_choice():
            return {}
        has = [name for name in VARIABLES if os.environ.get(name)] or VARIABLES[:1]
        return {name: _added(os.environ.get(name, "")) for name in has}

    def apply(self, torch: Any, seams: Seams) -> None:
        """It is at work already."""
        self._torch = torch

    def receipt(self) -> Receipt:
        if not self._torch.cuda.is_initialized():
            return self.not_applied("the job does not use a GPU")
        backend = self._torch.cuda.get_allocator_backend()
        if backend != "native":
            return self.not_applied(f"the allocator is {backend}, which has no segments")
        segments = self._torch.cuda.memory_snapshot()
        grown = [one for one in segments if one.get("is_expandable")]
        if grown:
            size = sum(one["total_size"] for one in grown)
            return self.applied(segments=len(segments), expandable=len(grown), bytes=size)
        if not segments:
            return self.not_applied("nothing is allocated on the GPU")
        if not any(KEY in os.environ.get(name, "") for name in VARIABLES):
            return self.not_applied("the script has replaced the allocator's settings")
        return self.not_applied("no segment can grow: this system or the user forbids it")


def users_choice() -> str:
    """The variable in which the user speaks of growing segments; empty where they do not."""
    return next((name for name in VARIABLES if KEY in os.environ.get(name, "")), "")


def _added(settings: str) -> str:
    return ",".join(part for part in (settings.rstrip(", "), f"{KEY}:True") if part)


def _by_peaks(seen: Seen) -> Expectation:
    """Where nobody counted calls of the driver: is memory short, and full of holes?"""
    memory = seen.measurement.memory
    reserved, allocated = memory.device_peak_reserved, memory.device_peak_allocated
    if not reserved or allocated is None or not memory.device_total:
        return refuse("the GPU's memory was not measured")
    if reserved < FULL * memory.device_total:
        return refuse(
            f"{reserved / memory.device_total:.0%} of the GPU's memory is all that the job takes"
        )
    if reserved - allocated < HOLES * reserved:
        return refuse(f"of the memory that torch reserves, {allocated / reserved:.0%} is in use")
    return Expectation(IN_HOLES)
