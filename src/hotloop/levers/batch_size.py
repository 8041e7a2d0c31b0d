"""Another number of samples to one step of the optimizer.

It changes the training: fewer, better averaged steps an epoch, which may want another learning
rate. So it is tried only by those who ask for it. Only a loop of ours puts batches together itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import Effect, Expectation, Group, Lever, Receipt, Seen, refuse

if TYPE_CHECKING:
    from hotloop.seams import Seams


@dataclass
class BatchSize(Lever):
    name = "batch_size"
    summary = "another number of samples to one step of the optimizer"
    group = Group.BATCH
    effect = Effect.CHANGES_TRAINING
    not_for_memory = "another batch trains otherwise; smaller passes of it save the memory as well"

    size: int = 0
    """Samples to one step. 0: as the job has it."""

    def __post_init__(self) -> None:
        self._loop: Any = None
        self._was = self._steps = 0

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        """Where a search of sizes begins; `search.batch_sizes` goes on from there."""
        loop = seen.measurement.inventory.loop
        return [] if loop is None else [{"size": 2 * loop.batch_size}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        loop, loader = seen.measurement.inventory.loop, seen.loader
        if loop is None:
            return refuse("only a loop of hotloop's own puts batches together itself")
        if not loop.resizable:
            return refuse("the job's data() makes its own batches")
        if loader is not None and loader.samples is not None and loader.samples <= loop.batch_size:
            return refuse(f"all {loader.samples} samples are one batch already")
        return Expectation(seen.share("forward", "backward", "optimizer", "data", "copy", "rest"))

    def problem(self) -> str:
        return "" if self.size >= 0 else f"size must be at least 0, not {self.size}"

    def apply(self, torch: Any, seams: Seams) -> None:
        seams.loop.before.append(self._begin)
        seams.step.after.append(self._stepped)

    def receipt(self) -> Receipt:
        if self._loop is None:
            return self.not_applied("the loop is the script's own")
        if self._loop.batch_size == self._was:
            return self.not_applied(f"the job has batches of {self._was} samples by itself")
        if not self._steps:
            return self.not_applied("no optimizer stepped")
        return self.applied(
            samples=self._loop.batch_size, samples_before=self._was, steps=self._steps
        )

    def _begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Passes stay as large as they are, unless a pass is the whole batch."""
        self._loop = loop = args[0]
        self._was = loop.batch_size
        was_whole = loop.microbatch >= loop.batch_size
        loop.batch_size = self.size or loop.batch_size
        if was_whole:
            loop.microbatch = loop.batch_size

    def _stepped(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        self._steps += 1
