"""The optimizer updates all parameters in a few kernels that do the whole update at once.

By default torch runs one kernel an operation, over a group of parameters on a GPU and over each
parameter on a CPU. An optimizer for which the script has chosen an implementation is left alone.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import Effect, Expectation, Group, Lever, Receipt, Seen, refuse
from hotloop.levers.fusing import KERNELS, complete, fuse, is_fused, obstacle

if TYPE_CHECKING:
    from hotloop.seams import Seams

UPDATING = 0.01


@dataclass
class FusedOptimizer(Lever):
    name = "fused_optimizer"
    summary = "the optimizer's whole update in fused kernels"
    group = Group.GRAPH
    effect = Effect.SAME_MATH
    not_for_memory = ""

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._fused: weakref.WeakSet[Any] = weakref.WeakSet()
        self._refused: weakref.WeakSet[Any] = weakref.WeakSet()
        self._reasons: list[str] = []
        self._names: set[str] = set()
        self._originals: dict[str, Any] = {}
        self._launches = self._steps = 0

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        optimizers = seen.measurement.inventory.optimizers
        known = [one for one in optimizers if one.name in KERNELS]
        share = seen.share("optimizer")
        if not optimizers:
            return refuse("no optimizer steps")
        if not known:
            return refuse(f"{optimizers[0].name} has no fused kernel")
        if all(one.fused for one in known):
            return refuse("the script's optimizer is already fused")
        if all(one.fused or one.foreach is not None for one in known):
            return refuse("the script has chosen the optimizer's implementation itself")
        if share < UPDATING and seen.objective != "memory":
            return refuse(f"the optimizer takes {share:.1%} of a step")
        return Expectation(share / 2)

    def apply(self, torch: Any, seams: Seams) -> None:
        """At steps rather than when it is built: only then are all parameters where they stay."""
        self._torch = torch
        seams.step.before.append(self._before)
        seams.step.after.append(self._after)

    def receipt(self) -> Receipt:
        if self._steps and self._launches:
            names = ", ".join(sorted(self._names))
            return self.applied(optimizers=names, steps=self._steps, launches_seen=self._launches)
        if self._steps:
            return self.not_applied("the fused kernel never ran")
        return self.not_applied(self._reasons[0] if self._reasons else "no optimizer stepped")

    def _before(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Every time: a group may have been added since, or settings loaded from a checkpoint."""
        optimizer = args[0]
        if optimizer in self._refused:
            return
        if is_fused(optimizer):
            if optimizer in self._fused:
                complete(self._torch, optimizer)
            else:
                self._refuse(optimizer, "is already fused")
        elif reason := obstacle(self._torch, optimizer):
            self._refuse(optimizer, reason)
        else:
            self._fuse(optimizer)

    def _after(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        self._steps += args[0] in self._fused
        while self._originals:
            setattr(self._torch, *self._originals.popitem())

    def _refuse(self, optimizer: Any, reason: str) -> None:
        self._refused.add(optimizer)
        self._reasons.append(f"the script's {type(optimizer).__name__} {reason}")

    def _fuse(self, optimizer: Any) -> None:
        name = type(optimizer).__name__
        fuse(self._torch, optimizer, again=optimizer in self._fused)
        self._fused.add(optimizer)
        self._names.add(name)
        self._count_launches(KERNELS[name])

    def _count_launches(self, kernel: str) -> None:
        """During one step: evidence need not cost anything in the others."""
        launch = self._originals.setdefault(kernel, getattr(self._torch, kernel))

        def counted(*args: Any, **kwargs: Any) -> Any:
            self._launches += 1
            return launch(*args, **kwargs)

        setattr(self._torch, kernel, counted)
