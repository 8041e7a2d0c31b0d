"""Matrix products of odd sizes padded inside the captured graph: a vocabulary of 50257, above all.

Rows of 50257 16-bit numbers begin anywhere in memory, and tensor cores want them at multiples of 16
bytes. People pad the vocabulary to 50304 by hand, and have other parameters and checkpoints then.
Here both stay as they are: `compile` captures the graph, and this pads what is multiplied in it.
"""

from __future__ import annotations

from dataclasses import dataclass
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
from hotloop.levers.padded_products import COARSEST, LEAST, Padded, pad_products

if TYPE_CHECKING:
    from hotloop.levers.graphs import Captured
    from hotloop.seams import Seams

GAIN = 0.1
"""Of the model's own passes: what odd products can cost them. Only a trial can tell."""


@dataclass
class ShapePadding(Lever):
    name = "shape_padding"
    summary = "matrix products of odd sizes padded inside the compiled graph"
    group = Group.GRAPH
    effect = Effect.SAME_MATH
    not_for_memory = "zeros beside the numbers take memory"
    requires = ("compile",)

    multiple: int = 64
    """Of this many numbers are padded sizes of a thousand and more; others, of 16 bytes."""

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._graphs: list[tuple[Captured, Padded]] = []

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        models = seen.measurement.inventory.models
        if not seen.on_gpu:
            return refuse("it is for the tensor cores of a GPU")
        if seen.is_compiled:
            return refuse(GRAPHS_UNSEEN)
        if not any(model.odd_sizes for model in models):
            return refuse(
                f"the model's weights have no size above {LEAST} that {COARSEST} does not divide"
            )
        return Expectation(seen.share("forward", "backward") * GAIN)

    def problem(self) -> str:
        if self.multiple >= COARSEST and self.multiple % COARSEST == 0:
            return ""
        return f"multiple must be a multiple of {COARSEST}, not {self.multiple}"

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch = torch
        seams.captured.before.append(self._pad)

    def receipt(self) -> Receipt:
        if not self._graphs:
            return self.not_applied("no graph was captured")
        ran = [(graph, found) for graph, found in self._graphs if graph.runs and found.products]
        if not ran:
            return self.not_applied(self._why_not())
        widest = max((found for _, found in ran), key=lambda found: found.widest)
        return self.applied(
            products=sum(found.products for _, found in ran),
            widest=widest.widest,
            padded_to=widest.widest_to,
            left_alone=sum(found.small for _, found in ran),
            runs=sum(graph.runs for graph, _ in ran),
        )

    def _pad(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        captured = args[0]
        self._graphs.append((captured, pad_products(self._torch, captured, self.multiple)))

    def _why_not(self) -> str:
        if any(found.products for _, found in self._graphs):
            return "no graph with a padded product ran"
        if any(found.small for _, found in self._graphs):
            return f"the odd sizes found are below {LEAST}, which padding would enlarge too much"
        return "no product of an odd size was found in the captured graphs"
