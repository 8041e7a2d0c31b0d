"""Products with large weights in a captured graph, computed in 8 bits by torchao.

Forward, and backward for input and weight: each operand is scaled, row by row, to the range of
8 bits and cast just before it is multiplied. Modules, weights and checkpoints stay as they are.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hotloop.levers.attention.nodes import shape
from hotloop.levers.graphs import Captured
from hotloop.levers.products import Product, read

RECIPES = ("rowwise", "rowwise_with_gw_hp")
"""As torchao names them. Both have three bits of mantissa throughout; the second computes the
gradients of weights in the wider format. Its scaling by whole tensors keeps two bits of gradients:
rounding to that few is what a comparison is there to catch."""
LEAST = 512
"""Taken for granted: below, casting both operands takes longer than their product wins."""
TILE = 16
"""Sizes that the kernels take: multiples of this."""


@dataclass
class Converted:
    """What became of one graph."""

    products: int = 0
    small: int = 0
    """Products with weights that are too small, or of other sizes than kernels take."""


def in_eight_bits(torch: Any, captured: Captured, recipe: str, emulate: bool = False) -> Converted:
    """`emulate`: the same numbers, computed in the wider format. For a device without 8 bits."""
    done, graph = Converted(), captured.graph.graph
    weights = _weights(torch, captured)
    for node in list(graph.nodes):
        product = read(torch, node)
        if product is None or product.right not in weights or product.factors:
            continue
        if not _fits(product):
            done.small += 1
            continue
        _replace(torch, graph, node, product, multiply(torch, recipe, emulate))
        done.products += 1
    if done.products:
        graph.lint()
        captured.graph.recompile()
    return done


def multiply(torch: Any, recipe: str, emulate: bool) -> Any:
    """A function of this module, by whose name torch finds again what it has compiled with it."""
    name = f"multiply_{recipe}{'_emulated' if emulate else ''}"
    if name not in globals():
        function = _multiply(torch, recipe, emulate)
        function.__module__, function.__name__, function.__qualname__ = __name__, name, name
        globals()[name] = function
        marked = torch._inductor.config.unsafe_marked_cacheable_functions
        marked = {**marked, f"{__name__}.{name}": _version()}
        torch._inductor.config.unsafe_marked_cacheable_functions = marked
    return globals()[name]


def _multiply(torch: Any, recipe: str, emulate: bool) -> Any:
    config_of = importlib.import_module("torchao.float8.config").Float8LinearConfig
    layers = importlib.import_module("torchao.float8.float8_linear")
    config = dataclasses.replace(config_of.from_recipe_name(recipe), emulate=emulate)
    # A layer that holds nothing: it knows how its kernels are to be called.
    layer = layers.Float8Linear(TILE, TILE, bias=False, config=config, device="meta")

    def function(x: Any, weight: Any) -> Any:
        if torch.is_autocast_enabled(x.device.type):
            x = x.to(torch.get_autocast_dtype(x.device.type))
        apply = layers.matmul_with_hp_or_float8_args.apply
        return apply(x, weight, layer.linear_mm_config, config)

    return function


def _version() -> str:
    return str(importlib.import_module("torchao").__version__)


def _weights(torch: Any, captured: Captured) -> set[Any]:
    """Nodes that are a model's own: attention multiplies what was just computed."""
    placeholders = [node for node in captured.graph.graph.nodes if node.op == "placeholder"]
    known = dict(zip(placeholders, captured.inputs, strict=True))
    for node in captured.graph.graph.nodes:
        if node.op == "get_attr":
            known[node] = getattr(captured.graph, node.target, None)
    return {node for node, value in known.items() if isinstance(value, torch.nn.Parameter)}


def _fits(product: Product) -> bool:
    rows = shape(product.left)[:-1]
    sizes = [*product.sizes, *rows]
    if not all(isinstance(size, int) for size in sizes):
        return False  # one that may change
    inner, outer = (int(size) for size in product.sizes)
    height = math.prod(int(size) for size in rows)
    return height % TILE == 0 and is_large((inner, outer))


def is_large(weight: Sequence[int]) -> bool:
    """Whether this is the shape of a matrix whose products are computed in 8 bits."""
    return len(weight) == 2 and all(size % TILE == 0 and size >= LEAST for size in weight)


def _replace(torch: Any, graph: Any, node: Any, product: Product, function: Any) -> None:
    with graph.inserting_before(node):
        right = product.right
        if product.name == "linear":
            right = graph.call_method("t", (right,))
            right.meta["example_value"] = product.right.meta["example_value"].t()
        made = graph.call_function(function, (product.left, right))
        made.meta.update(node.meta)
        if product.added is not None:
            added = graph.call_method("to", (product.added, made))
            added.meta["example_value"] = node.meta["example_value"]
            made = graph.call_function(torch.add, (made, added))
    made.meta.update(node.meta)
    node.replace_all_uses_with(made)
    graph.erase_node(node)
