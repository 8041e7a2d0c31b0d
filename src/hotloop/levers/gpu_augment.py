"""Augmentation on the device, a batch at a time, instead of where samples are loaded.

Only what a job declares as `augment(inputs)`, torch operations on a batch, can be moved. It then
draws its random numbers from the device's generator: others, by the same law.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import Effect, Expectation, Group, Lever, Receipt, Seen, refuse
from hotloop.levers.waiting import hardly_waits

if TYPE_CHECKING:
    from hotloop.seams import Seams


@dataclass
class GpuAugment(Lever):
    name = "gpu_augment"
    summary = "augmentation on the GPU, a batch at a time, not in the loader"
    group = Group.DATA
    effect = Effect.SAME_MATH
    not_for_memory = "augmenting a batch on the GPU takes the GPU's memory"

    def __post_init__(self) -> None:
        self._reason = "the loop is the script's own"
        self._batches = 0

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        loop = seen.measurement.inventory.loop
        if loop is None:
            return refuse("only a job that hotloop's own loop trains can declare an augmentation")
        if not loop.augments:
            return refuse("the job declares no augmentation")
        if not seen.on_gpu:
            return refuse("the device that computes is the one that loads")
        if reason := hardly_waits(seen):
            return refuse(reason)
        return Expectation(seen.share("data"))

    def apply(self, torch: Any, seams: Seams) -> None:
        seams.loop.before.append(self._begin)
        seams.loop.after.append(self._begun)

    def receipt(self) -> Receipt:
        if self._batches:
            return self.applied(batches=self._batches)
        return self.not_applied(self._reason)

    def _begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        loop = args[0]
        if loop.device.type == "cpu":
            self._reason = "the device that computes is the one that loads"
        else:
            loop.augments_here = True

    def _begun(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        loop = args[0]
        if not loop.augments_here:
            return
        augment = loop.augment
        if augment is None:
            self._reason = "the job declares no augmentation"
            return
        self._reason = "no batch was augmented"

        def counted(inputs: Any) -> Any:
            self._batches += 1
            return augment(inputs)

        loop.augment = counted
