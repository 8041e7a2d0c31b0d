"""First convolutions in strides, over pixels folded into channels, in the graph that is compiled.

A picture has three channels, and tensor cores take eight: cuDNN pads, on the way there and for the
gradient, and computes mostly with zeros. Four pixels that a stride of 2 takes at once are one of
twelve channels, which fills them. Weights, gradients and checkpoints keep their shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import (
    GRAPHS_UNSEEN,
    Effect,
    Expectation,
    Group,
    Lever,
    Receipt,
    Seen,
    refuse,
)
from hotloop.levers.folding import folds, replace
from hotloop.levers.rewriting import Rewrites, asked, replaced, rewritten

if TYPE_CHECKING:
    from hotloop.levers.graphs import Captured
    from hotloop.seams import Seams

GAIN = 0.1
"""Of the model's own passes. Only a trial can tell."""


@dataclass
class FoldedPixels(Lever):
    name = "folded_pixels"
    summary = "first convolutions in strides, with pixels folded into channels"
    group = Group.GRAPH
    effect = Effect.SAME_MATH
    not_for_memory = "folded pixels are a copy of the batch, with zeros beside them"
    requires = ("compile",)

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._rewrites = Rewrites("a convolution over few channels")

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        if not seen.on_gpu:
            return refuse("it is for the tensor cores of a GPU")
        if seen.is_compiled:
            return refuse(GRAPHS_UNSEEN)
        if not any(model.foldable for model in seen.measurement.inventory.models):
            return refuse("no model was seen to have a convolution over few channels in strides")
        return Expectation(seen.share("forward", "backward") * GAIN)

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch = torch
        seams.captured.before.append(self._rewrite)

    def receipt(self) -> Receipt:
        evidence = self._rewrites.evidence("convolutions")
        return self.applied(**evidence) if evidence else self.not_applied(self._rewrites.why_not)

    def _rewrite(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        captured: Captured = args[0]
        ask = partial(folds, self._torch)
        found = [how for _, how in asked(captured.graph.graph, ask)]

        def fold_all(graph: Any) -> int:
            return replaced(graph, ask, partial(replace, self._torch, graph))

        self._rewrites.note(captured, rewritten(self._torch, captured, fold_all), found)
