"""The batch of a step is taken in passes of another size, and their gradients are gathered.

Both classic moves are one setting. Passes that are tiny are fused into fewer or into one, and pay
the fixed cost of a pass once; passes that are too large for the memory are taken apart. The batch
that the optimizer steps on stays what it is, and so do its gradients, up to the order of summation.

Only a loop of ours can do this: in a script, what belongs to a pass is the script's own business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import Effect, Expectation, Group, Lever, Receipt, Seen, refuse

if TYPE_CHECKING:
    from hotloop.seams import Seams

SMALLER = (2, 4, 8)
"""Times smaller: where memory is what counts."""


@dataclass
class Microbatch(Lever):
    name = "microbatch"
    summary = "a batch in passes of another size, their gradients gathered"
    group = Group.BATCH
    effect = Effect.SAME_MATH
    not_for_memory = ""
    regroups = True

    size: int = 0
    """Samples to one pass. 0: the whole batch."""

    def __post_init__(self) -> None:
        self._loop: Any = None
        self._was = 0
        self._passes = self._steps = 0

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        loop = seen.measurement.inventory.loop
        if loop is None:
            return []
        if seen.objective == "memory":
            sizes = [loop.microbatch // times for times in SMALLER]
        else:
            # Between the two: a pass that fills a cache is not made faster by being larger.
            between = round((loop.microbatch * loop.batch_size) ** 0.5)
            sizes = [loop.batch_size, between] if loop.microbatch < loop.batch_size else []
        usable = [size for size in dict.fromkeys(sizes) if 0 < size != loop.microbatch]
        return [{"size": size if size < loop.batch_size else 0} for size in usable]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        loop = seen.measurement.inventory.loop
        if loop is None:
            return refuse("only a loop of hotloop's own can take a batch in other passes")
        if seen.objective == "memory":
            if loop.microbatch == 1:
                return refuse("a pass has a single sample already")
            smallest = max(loop.microbatch // max(SMALLER), 1)
            return Expectation(1 - smallest / loop.microbatch, of_memory=True)
        if loop.microbatch >= loop.batch_size:
            return refuse("a step is a single pass already")
        fixed = 1 - loop.microbatch / loop.batch_size
        return Expectation(seen.share("forward", "backward") * fixed)

    @classmethod
    def effect_on(cls, seen: Seen) -> tuple[Effect, str]:
        """Batch norm normalises by the samples of a pass: with others it computes other numbers."""
        if any(model.batch_norms for model in seen.measurement.inventory.models):
            return Effect.CHANGES_TRAINING, "batch norm depends on what is in a pass"
        return cls.effect, ""

    def problem(self) -> str:
        return "" if self.size >= 0 else f"size must be at least 0, not {self.size}"

    def apply(self, torch: Any, seams: Seams) -> None:
        seams.loop.before.append(self._begin)
        seams.backward.after.append(self._passed)
        seams.step.after.append(self._stepped)

    def receipt(self) -> Receipt:
        if self._loop is None:
            return self.not_applied("the loop is the script's own")
        now = self._loop.microbatch
        if now == self._was:
            return self.not_applied(f"the job takes passes of {now} samples by itself")
        if not self._steps:
            return self.not_applied("no optimizer stepped")
        a_step = self._passes / self._steps
        return self.applied(samples=now, samples_before=self._was, passes_a_step=round(a_step, 2))

    def _begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._loop = loop = args[0]
        self._was = min(loop.microbatch, loop.batch_size)
        loop.microbatch = min(self.size or loop.batch_size, loop.batch_size)

    def _passed(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        self._passes += 1

    def _stepped(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        self._steps += 1
