"""Matrix products of odd sizes in a captured graph, done on operands that are padded with zeros.

Tensor cores want rows that begin at multiples of 16 bytes. What is added is zero on both sides of a
product, and is cut off its result: nothing comes of it, in the gradients neither.

Inductor pads by itself, product by product, after the graph was differentiated, if that was faster
when tried. There the gradient of a wide result is padded anew for each of the two products that
take it, and stands in memory three times. Padded before, it is written once, padded, and both read
it; the cast to 16 bits and the loss are fused with padding and cutting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hotloop.levers.attention.nodes import dtype, shape
from hotloop.levers.graphs import Captured
from hotloop.levers.products import Product, Size, read

LEAST = 64
"""A smaller size would grow too much: ten classes are not worth sixteen."""
WIDE = 1024
"""From here on sizes are padded to whole tiles, which adds little."""
ALIGNED = {"torch.float16": 8, "torch.bfloat16": 8, "torch.float32": 4}
"""Numbers in 16 bytes."""
COARSEST = max(ALIGNED.values())


@dataclass
class Padded:
    """What became of one graph."""

    products: int = 0
    widest: int = 0
    """The largest size that was padded, and to what."""
    widest_to: int = 0
    small: int = 0
    """Products that are odd, and too small."""


def odd_sizes(sizes: tuple[int, ...]) -> list[int]:
    """Of a weight: those that 16-bit products are padded for."""
    return [size for size in sizes if size >= LEAST and size % COARSEST]


def pad_products(torch: Any, captured: Captured, multiple: int) -> Padded:
    done = Padded()
    graph = captured.graph.graph
    for node in list(graph.nodes):
        product = read(torch, node)
        if product is None:
            continue
        needed = ALIGNED[str(dtype(node))]
        missing = tuple(_missing(size, needed, multiple) for size in product.sizes)
        if any(missing):
            _replace(torch, graph, node, product, missing[0], missing[1])
            _count(done, product.sizes, missing)
        elif any(isinstance(size, int) and size > 1 and size % needed for size in product.sizes):
            done.small += 1
    if done.products:
        graph.lint()
        captured.graph.recompile()
    return done


def _count(done: Padded, sizes: tuple[Size, Size], missing: tuple[int, ...]) -> None:
    done.products += 1
    for size, more in zip(sizes, missing, strict=True):
        if more and isinstance(size, int) and size > done.widest:
            done.widest, done.widest_to = size, size + more


def _missing(size: Size, needed: int, multiple: int) -> int:
    """How many zeros it lacks."""
    if not isinstance(size, int) or size < LEAST or size % needed == 0:
        return 0
    return -size % (multiple if size >= WIDE else needed)


def _replace(torch: Any, graph: Any, node: Any, product: Product, inner: int, outer: int) -> None:
    """The result is made whole again in memory: a script may look at it in any way it likes. Where
    it is only computed with, no copy is made: the compiler reads from the padded one."""
    linear = product.name == "linear"
    function = torch.nn.functional.linear if linear else getattr(torch, product.name)
    width = product.sizes[1]
    with graph.inserting_before(node):

        def padded(part: Any, *more: int) -> Any:
            if not any(more):
                return part
            return graph.call_function(torch.nn.functional.pad, (part, more))

        left = padded(product.left, 0, inner)
        more = (inner, outer) if linear else (outer, inner)
        right = padded(product.right, 0, more[0], 0, more[1])
        added = product.added
        if added is not None and shape(added)[-1:] == (width,):
            added = padded(added, 0, outer)
        parts = (left, right) if added is None else (left, right, added)
        parts = (added, left, right) if product.name == "addmm" else parts
        made = graph.call_function(function, parts, dict(product.factors))
        if outer:
            made = graph.call_function(torch.narrow, (made, -1, 0, width))
            made = graph.call_method("contiguous", (made,))
    made.meta.update(node.meta)
    node.replace_all_uses_with(made)
    graph.erase_node(node)
