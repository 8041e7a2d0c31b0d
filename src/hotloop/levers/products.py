"""Matrix products in a captured graph, however they are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hotloop.levers.attention.nodes import dtype, example, is_tensor, name_of, shape

FORMATS = ("torch.float32", "torch.bfloat16", "torch.float16")

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


def read(torch: Any, node: Any) -> Product | None:
    """The product that this node is, in a form whose result lies row by row in memory."""
    name = name_of(node)
    names = ARGUMENTS.get(name, ())
    if not names or len(node.args) > len(names) or not is_tensor(node):
        return None
    given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    factors = {key: given.pop(key) for key in FACTORS & given.keys()}
    if given.keys() - set(names) or str(dtype(node)) not in FORMATS:
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
