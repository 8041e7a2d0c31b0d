"""The repeated blocks of a model keep their inputs alone, and are computed again on the way back.

What a block computes inside is most of what a deep model holds between its two passes. Computed
again it costs up to another forward pass, about a third of a step, and memory falls to one block's
inner results and every block's input. Random numbers are drawn again as they were.
"""

from __future__ import annotations

import math
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import (
    GRAPHS_UNSEEN,
    NO_MODEL,
    Effect,
    Expectation,
    Group,
    Lever,
    Receipt,
    Seen,
    refuse,
)
from hotloop.levers.blocks import LEAST as ALIKE
from hotloop.levers.blocks import repeated_blocks
from hotloop.levers.recomputing import Recomputing

if TYPE_CHECKING:
    from hotloop.levers.graphs import Captured
    from hotloop.seams import Seams

BYTES_A_WEIGHT = 16
"""In float32 with Adam: weight, gradient and two moments. The rest may be kept between passes."""
LEAST = 0.05
"""Of the peak memory."""
MARK = "tag_activation_checkpoint"
"""What a checkpoint becomes in a graph, as torch names it."""


@dataclass
class CheckpointBlocks(Lever):
    name = "checkpoint_blocks"
    summary = "repeated blocks computed again in the backward pass, not kept"
    group = Group.MEMORY
    effect = Effect.SAME_MATH
    not_for_memory = ""

    every: float = 1.0
    """1: every block; 2: every second one, which costs half as much time and saves less; 1.5: two
    of three."""

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._roots: list[weakref.ref[Any]] = []
        self._kinds: dict[type, Recomputing] = {}
        self._graphs: list[tuple[Captured, int]] = []

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        """Where memory is the objective, fewer blocks are never better."""
        return [{"every": 1}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        models = seen.measurement.inventory.models
        peak = seen.measurement.memory.peak
        if seen.objective != "memory":
            return refuse("it costs time; --objective memory tries it")
        if not any(model.blocks for model in models):
            return refuse(f"no model was seen to have {ALIKE} or more blocks alike")
        if seen.is_compiled:
            return refuse(GRAPHS_UNSEEN)
        if not peak:
            return refuse("the job's memory was not measured")
        left = 1 - BYTES_A_WEIGHT * sum(model.trainable for model in models) / peak
        if left < LEAST:
            return refuse("the job's memory is taken by weights, gradients and the optimizer")
        return Expectation(left, of_memory=True)

    def problem(self) -> str:
        return "" if 1 <= self.every < math.inf else "every block is 1, every second one is 2"

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch = torch
        seams.model.at_once = True  # a job without memory does not come to its second step
        seams.model.before.append(self._call)
        seams.captured.before.append(self._see)

    def receipt(self) -> Receipt:
        kinds = self._kinds.values()
        recomputed = sum(kind.recomputed for kind in kinds)
        compiled = [(graph, marked) for graph, marked in self._graphs if graph.runs]
        if any(kind.again for kind in kinds):
            return self.not_applied("the script computes its blocks again itself")
        blocks = sum(kind.chosen for kind in kinds)
        if recomputed:
            again = sum(len(kind.blocks) for kind in kinds)
            return self.applied(blocks=blocks, recomputed=again, recomputations=recomputed)
        if compiled:
            return self.applied(blocks=blocks, in_graphs=sum(marked for _, marked in compiled))
        return self.not_applied(self._why_not())

    def _why_not(self) -> str:
        if not self._roots:
            return NO_MODEL
        if not self._kinds:
            return f"the model has fewer than {ALIKE} blocks alike"
        problem = next((kind.problem for kind in self._kinds.values() if kind.problem), "")
        if problem:
            return problem
        if not any(kind.calls for kind in self._kinds.values()):
            return "no block was called in training, or it was compiled by the script itself"
        return "no block was computed again: nothing was differentiated"

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        root = args[0]
        if not self._torch.is_grad_enabled() or any(known() is root for known in self._roots):
            return
        self._roots.append(weakref.ref(root))
        for group in repeated_blocks(root):
            if group.kind not in self._kinds:
                self._kinds[group.kind] = Recomputing(self._torch, group.kind)
            wanted = {int(number * self.every) for number in range(len(group.blocks))}
            chosen = [block for number, block in enumerate(group.blocks) if number in wanted]
            self._kinds[group.kind].choose(chosen, scout=chosen[0])

    def _see(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """How many blocks a graph computes again, by the marks that it carries for the compiler."""
        captured = args[0]
        targets = [node.target for node in captured.graph.graph.nodes]
        marked = sum(getattr(target, "_name", "") == MARK for target in targets)
        if marked:
            self._graphs.append((captured, marked))
