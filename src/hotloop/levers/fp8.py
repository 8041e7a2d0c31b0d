"""Products with large weights in 8 bits, as the tensor cores of recent GPUs have them.

`compile` captures the graph, and this computes the products in it by torchao: cast and scaled as
part of it, they are fused with what comes before. Needs `pip install "hotloop[fp8]"`.
"""

from __future__ import annotations

import importlib
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
from hotloop.levers.eight_bits import LEAST, RECIPES, Converted, in_eight_bits

if TYPE_CHECKING:
    from hotloop.levers.graphs import Captured
    from hotloop.seams import Seams

GAIN = 0.2
"""Of the model's own passes, taken for granted. Only a trial can tell."""
SINCE = (8, 9)
"""The compute capability that has them."""
NOT_INSTALLED = 'torchao is not installed: pip install "hotloop[fp8]"'
NO_HARDWARE = "this GPU does not compute in 8 bits"


@dataclass
class Fp8(Lever):
    name = "fp8"
    summary = "matrix products with large weights in 8 bits, scaled row by row"
    group = Group.PRECISION
    effect = Effect.LOWER_PRECISION
    not_for_memory = ""
    requires = ("compile",)
    mantissa = 3

    recipe: str = RECIPES[0]
    """rowwise, or rowwise_with_gw_hp: gradients of weights in the wider format."""

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._graphs: list[tuple[Captured, Converted]] = []
        self._problem = ""

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{"recipe": recipe} for recipe in RECIPES]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        software = seen.measurement.software
        if not seen.on_gpu:
            return refuse("it is for the tensor cores of a GPU")
        if not software.float8:
            return refuse(NO_HARDWARE)
        if not software.torchao:
            return refuse(NOT_INSTALLED)
        if seen.is_compiled:
            return refuse(GRAPHS_UNSEEN)
        counted = [model.large_matrices for model in seen.measurement.inventory.models]
        if counted and not any(count is None or count for count in counted):
            return refuse(f"none of the model's weights is a matrix of {LEAST} × {LEAST} or more")
        return Expectation(seen.share("forward", "backward") * GAIN)

    def problem(self) -> str:
        known = " or ".join(RECIPES)
        return "" if self.recipe in RECIPES else f"recipe must be {known}, not {self.recipe!r}"

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch = torch
        try:
            importlib.import_module("torchao.float8")
        except ImportError:
            self._problem = NOT_INSTALLED
            return
        seams.captured.before.append(self._convert)

    def receipt(self) -> Receipt:
        if self._problem:
            return self.not_applied(self._problem)
        ran = [found for graph, found in self._graphs if graph.runs]
        if not ran:
            return self.not_applied("no graph was captured and run")
        if not any(found.products for found in ran):
            return self.not_applied(
                f"no product with a weight of {LEAST} × {LEAST} or more, in whole tiles, was seen"
            )
        return self.applied(
            products=sum(found.products for found in ran),
            left_alone=sum(found.small for found in ran),
            recipe=self.recipe,
        )

    def _convert(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        captured, torch = args[0], self._torch
        if not has_eight_bits(torch):
            self._problem = NO_HARDWARE
            return
        self._graphs.append((captured, in_eight_bits(torch, captured, self.recipe)))


def has_eight_bits(torch: Any) -> bool:
    return bool(torch.cuda.is_available() and torch.cuda.get_device_capability() >= SINCE)
