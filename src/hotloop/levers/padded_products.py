"""Matrix products of odd sizes in a captured graph, done on operands that are padded with zeros.

Tensor cores want rows that begin at multiples of 16 bytes. What is added is zero on both sides of a
product, and is cut off its result: nothing comes of it, in the gradients neither.

Inductor pads by itself, product by product, after the graph was differentiated, if that was faster
when tried. There the gradient of a wide result is padded anew for each of the two products that
take it, and stands in memory three times. Padded before, it is written once, padded, and both read
it; the cast to 16 bits and the loss are fused with padding and cutting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hotloop.levers.attention.nodes import dtype, example, is_tensor, name_of, shape
from hotloop.levers.graphs import Captured

LEAST = 64
"""A smaller size would grow too much: ten classes are not worth sixteen."""
WIDE = 1024
"""From here on sizes are padded to whole tiles, which adds little."""
ALIGNED = {"torch.float16": 8, "torch.bfloat16": 8, "torch.float32": 4}
"""Numbers in 16 bytes."""
COARSEST = max(ALIGNED.values())

Size = int | str
"""A number, or the name of a size that may change, which is left alone."""

ARGUMENTS = {
    "linear": ("input", "weight", "bias"),
    "addmm": ("input", "mat1", "mat2"),
    "matmul": ("input", "other"),
    "mm": ("input", "mat2"),
    "bmm": ("input", "mat2"),
}
FACTORS = {"alpha", "beta"}


@dataclass
class Padded:
    """What became of one graph."""

    products: int = 0
    widest: int = 0
    """The largest size that was padded, and to what."""
    widest_to: int = 0
    small: int = 0
    """Products that are odd, and too small."""


@dataclass(frozen=True)
class Product:
    name: str
    left: Any
    right: Any
    added: Any = None
    factors: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sizes(self) -> tuple[Size, Size]:
        """What is summed over, and what each row of the result has."""
        return shape(self.left)[-1], shape(self.right)[0 if self.name == "linear" else -1]


def odd_sizes(sizes: tuple[int, ...]) -> list[int]:
    """Of a weight: those that 16-bit products are padded for."""
    return [size for size in sizes if size >= LEAST and size % COARSEST]


def pad_products(torch: Any, captured: Captured, multiple: int) -> Padded:
    done = Padded()
    graph = captured.graph.graph
    for node in list(graph.nodes):
        product = _read(torch, node)
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


def _read(torch: Any, node: Any) -> Product | None:
    """The product that this node is, in a form whose result lies row by row in memory."""
    name = name_of(node)
    names = ARGUMENTS.get(name, ())
    if not names or len(node.args) > len(names) or not is_tensor(node):
        return None
    given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    factors = {key: given.pop(key) for key in FACTORS & given.keys()}
    if given.keys() - set(names) or str(dtype(node)) not in ALIGNED:
        return None  # written into a tensor of its own, say
    first, second, third = (*(given.get(each) for each in names), None)[:3]
    added, left, right = (first, second, third) if name == "addmm" else (third, first, second)
    parts = [left, right] if added is None else [left, right, added]
    if not all(is_tensor(part) and _is_plain(torch, part) for part in parts):
        return None
    rows, columns = len(shape(left)), len(shape(right))
    fits = columns == 2 if name == "linear" else columns >= 2 and columns in (2, rows)
    return Product(name, left, right, added, factors) if fits and rows else None


def _is_plain(torch: Any, node: Any) -> bool:
    """Tensors of a kind of their own, such as quantised ones, may not know how to be padded."""
    kinds = (torch.Tensor, torch.nn.Parameter, torch._subclasses.FakeTensor)
    return type(example(node)) in kinds


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
