"""Clipping gradients and the optimizer's update as CUDA graphs, in a loop of the script's own.

Both go over every parameter in Python at each step, to launch a few short kernels. Where a compiled
model leaves little else to do, the GPU waits for that.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import (
    MUCH_FASTER,
    Effect,
    Expectation,
    Group,
    Lever,
    Receipt,
    Seen,
    refuse,
)
from hotloop.levers.capturing import KINDS, is_ready, make_ready, obstacle
from hotloop.levers.graphed_update import PATIENCE, Clips, Update
from hotloop.levers.replaying import BareRecorder, Recorder, Replays, Tally

if TYPE_CHECKING:
    from hotloop.seams import Seams

UPDATING = 0.01
LEAST_IDLE = 0.02
"""The share of a step that a GPU waits for its CPU before this is worth a trial."""
AT_FIRST = PATIENCE + 3
"""Updates that are done as they are before those of gradients that move can be replayed."""
QUEUEING = 0.7
"""Of the update's time, what goes by while kernels are queued. Assumed; only a trial can tell."""


@dataclass
class UpdateGraph(Lever):
    name = "update_graph"
    summary = "clipping and the optimizer's update as CUDA graphs, replayed"
    group = Group.GRAPH
    effect = Effect.SAME_MATH
    not_for_memory = "recorded graphs hold their memory, with a second set of gradients"
    conflicts = ("step_graph",)

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._updates: weakref.WeakKeyDictionary[Any, Update] = weakref.WeakKeyDictionary()
        self._refused: weakref.WeakSet[Any] = weakref.WeakSet()
        self._reasons: list[str] = []
        self._clips: Clips | None = None
        self._tallies: list[Tally] = []

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        optimizers = seen.measurement.inventory.optimizers
        share = seen.share("optimizer")
        if not seen.on_gpu:
            return refuse("CUDA graphs need a GPU")
        if not optimizers:
            return refuse("no optimizer steps")
        if not any(one.name in KINDS for one in optimizers):
            return refuse(f"{optimizers[0].name} cannot be captured in a graph")
        if seen.gpu_idle < LEAST_IDLE:
            return Expectation(share * QUEUEING, worth_from=MUCH_FASTER)
        if share < UPDATING:
            return refuse(f"the optimizer takes {share:.1%} of a step")
        return Expectation(share * QUEUEING)

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch = torch
        seams.step.before.append(self._prepare)
        seams.update.before.append(self._update)
        seams.clip.before.append(self._clip)

    def receipt(self) -> Receipt:
        made = self._tallies
        if not made:
            return self.not_applied(self._reasons[0] if self._reasons else "no optimizer stepped")
        if failed := [one.reason for one in made if one.reason]:
            return self.not_applied(failed[0])
        replayed, others = sum(one.replayed for one in made), sum(one.others for one in made)
        if not replayed and others <= AT_FIRST:
            return self.not_applied("there were too few steps to record one")
        if others > replayed + AT_FIRST:
            return self.not_applied(
                "the optimizer's settings or gradients are others at most steps"
            )
        clips = self._clips.replays.tally.replayed if self._clips else 0
        return self.applied(updates=replayed, clips=clips, as_they_are=others)

    def recorder(self, optimizer: Any) -> Recorder | None:
        """None where there is nothing to record."""
        devices = {p.device for group in optimizer.param_groups for p in group["params"]}
        device = next(iter(devices), None)
        if device is None or len(devices) > 1 or device.type != "cuda":
            return None
        return BareRecorder(self._torch, device)

    def _prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Every time: a group may have been added since, or settings loaded from a checkpoint."""
        optimizer = args[0]
        known = optimizer in self._updates
        if optimizer in self._refused:
            return
        if known and is_ready(optimizer):
            make_ready(self._torch, optimizer, again=True)
            return
        recorder = self.recorder(optimizer)
        reason = "is not on one GPU" if recorder is None else obstacle(self._torch, optimizer)
        if recorder is None or reason:
            self._updates.pop(optimizer, None)
            self._refused.add(optimizer)
            self._reasons.append(f"the script's {type(optimizer).__name__} {reason}")
            return
        make_ready(self._torch, optimizer, again=known)
        if not known:
            self._updates[optimizer] = update = Update(self._torch, Replays(recorder))
            self._tallies.append(update.replays.tally)
            self._clips = self._clips or Clips(self._torch, Replays(recorder))

    def _update(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        update = self._updates.get(args[0])
        if update is not None:
            kwargs["by"] = partial(update, kwargs["by"])

    def _clip(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        by = kwargs["by"]
        if self._clips is not None and by.__name__ == "clip_grad_norm_":
            kwargs["by"] = partial(self._clips, by)
