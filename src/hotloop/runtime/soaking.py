"""A soak trial, from the inside: what a long training meets, brought about in a few steps.

Passes over the loaders are cut short, so that their last batch, evaluation and the next pass come
soon; what is delivered in two passes is noted. Once the models are known, the run goes on from a
state that another left, if there is one; at its end it leaves its own.
"""

from __future__ import annotations

import weakref
from typing import Any

from hotloop.evidence import SoakSeen
from hotloop.runtime import checkpoint
from hotloop.runtime.checkpoint import Parts
from hotloop.runtime.cutting import cut_passes, has_order
from hotloop.runtime.delivered import DeliveredProbe
from hotloop.runtime.passes import Passes
from hotloop.runtime.patches import Patches
from hotloop.runtime.roots import DISCOVERY_STEPS
from hotloop.runtime.watching import Watch
from hotloop.trial.spec import Soak, StopRule

STEPS_A_BATCH = 10
"""A job that makes more of them does not draw on its loader any more: it kept what it drew."""


LONG = 60.0
"""Seconds, after which the second pass of a slow job is not made to its end."""


class Soaking:
    """Stands in for the stop rule, which decides only where no pass is cut."""

    give_up_above = None
    asked_from = 0

    def __init__(self, torch: Any, watch: Watch, soak: Soak, stop: StopRule) -> None:
        self.warm_up = stop.warm_up
        self._torch = torch
        self._watch = watch
        self._soak = soak
        self._stop = stop
        self._patches = Patches()
        self._passes = Passes(torch, watch.inventory.numbers)
        self._delivered = DeliveredProbe(torch, watch.inventory.numbers, self._patches)
        self._cut: set[int] = set()
        self._steps = 0
        self._optimizers: list[weakref.ref[Any]] = []
        self._parts: Parts | None = None
        self._loaded_at: int | None = None
        self._problem = ""

    def attach(self) -> None:
        if self._soak.batches:
            cut_passes(self._torch, self._patches, self._soak.batches)
        seams = self._watch.seams
        self._passes.attach(seams)
        self._delivered.attach(seams)
        seams.loader.after.append(self._begin)
        seams.step.after.append(self._meet)

    def satisfied(self, steps: int, seconds: float) -> bool:
        """Asked after every step."""
        self._steps += 1
        self._passes.note_step()
        if self._parts is None and self._steps > DISCOVERY_STEPS:
            self._go_on_from_state()
        if self._parts is None or self._steps == self._loaded_at:
            return False
        if self._waits_for_passes():
            return self._has_passed(seconds)
        return self._stop.satisfied(steps, seconds)

    def finish(self) -> SoakSeen:
        """At the end of the process, however that came about. Leaves the state behind."""
        self._patches.restore()
        return SoakSeen(
            passes=self._passes.begun,
            short_batch=self._passes.short_batch,
            evaluation=self._passes.evaluation,
            loaded=self._loaded_at is not None and self._steps > self._loaded_at,
            saved=self._save(),
            problem=self._problem,
            delivered=self._delivered.delivered,
        )

    def _has_passed(self, seconds: float) -> bool:
        """The last pass whole: what is stale in it may be any of its batches."""
        number, last = self._passes.stepped_in, self._soak.passes
        is_whole = seconds > LONG or self._delivered.is_whole(self._passes.training_loader, last)
        return number > last or (number == last and is_whole)

    def _waits_for_passes(self) -> bool:
        most = STEPS_A_BATCH * self._soak.passes * self._soak.batches
        return self._passes.training_loader in self._cut and self._steps < most

    def _go_on_from_state(self) -> None:
        """The parts are held from here on: at a script's end, what a function had is gone."""
        self._parts = self._alive()
        if self._soak.load and self._parts:
            self._problem = checkpoint.load(self._torch, self._parts, self._soak.load)
            self._loaded_at = None if self._problem else self._steps

    def _save(self) -> bool:
        parts = self._parts or self._alive()
        if not self._soak.save or not parts:
            return False
        problem = checkpoint.save(self._torch, parts, self._soak.save)
        self._problem = self._problem or problem
        return not problem

    def _alive(self) -> Parts:
        models = [known() for known in self._watch.driver.roots.roots]
        optimizers = [known() for known in self._optimizers]
        return Parts(
            [model for model in models if model is not None],
            [optimizer for optimizer in optimizers if optimizer is not None],
        )

    def _begin(self, args: tuple[Any, ...], iterator: Any, began: int) -> None:
        if self._soak.batches and has_order(self._torch, args[0]):
            self._cut.add(self._watch.inventory.numbers["loader"].of(args[0]))

    def _meet(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        if not any(known() is args[0] for known in self._optimizers):
            self._optimizers.append(weakref.ref(args[0]))
