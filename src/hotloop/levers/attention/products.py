"""The two products of attention: queries by keys, and weights by values.

However they are written, the first is brought to (…, queries, size) and (…, keys, size), the
second to (…, keys, size), by an order of each operand's dimensions.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Any

from hotloop.levers.attention.nodes import given, name_of, shape

PRODUCTS = {"matmul", "bmm", "baddbmm", "einsum"}


@dataclass(frozen=True)
class Operand:
    node: Any
    order: tuple[int, ...]
    """Of its dimensions, as `permute` takes it."""

    @property
    def is_as_it_is(self) -> bool:
        return self.order == tuple(range(len(self.order)))

    @property
    def shape(self) -> tuple[Any, ...]:
        known = shape(self.node)
        return tuple(known[dim] for dim in self.order)


@dataclass(frozen=True)
class Scores:
    query: Operand
    key: Operand
    scale: float = 1.0
    added: Any = None
    """A mask that the product itself adds, as baddbmm does."""


@dataclass(frozen=True)
class Spent:
    """Weights on values."""

    weights: Any
    value: Operand
    order: tuple[int, ...]
    """Of the result's dimensions, from (…, queries, size)."""


def read_scores(node: Any) -> Scores | None:
    name = name_of(node)
    if name == "einsum":
        return _scores_of_einsum(node)
    if name == "baddbmm":
        left, right = given(node, 1, "batch1"), given(node, 2, "batch2")
        beta, alpha = node.kwargs.get("beta", 1), node.kwargs.get("alpha", 1)
        if beta not in (0, 1) or not isinstance(alpha, int | float):
            return None
        added = given(node, 0, "input") if beta else None
        return Scores(_as_it_is(left), _turned(right), float(alpha), added)
    if name in PRODUCTS and len(node.args) == 2:
        left, right = node.args
        return Scores(_as_it_is(left), _turned(right))
    return None


def read_spent(node: Any) -> list[Spent]:
    """Every way to read it: of an einsum either operand may be the weights."""
    name = name_of(node)
    if name == "einsum":
        return _spent_of_einsum(node)
    if name in PRODUCTS - {"baddbmm"} and len(node.args) == 2:
        weights, values = node.args
        order = tuple(range(len(shape(node))))
        return [Spent(weights, _as_it_is(values), order)]
    return []


def _as_it_is(node: Any) -> Operand:
    return Operand(node, tuple(range(len(shape(node)))))


def _turned(node: Any) -> Operand:
    """The last two dimensions exchanged."""
    *batch, rows, columns = range(len(shape(node)))
    return Operand(node, (*batch, columns, rows))


def _scores_of_einsum(node: Any) -> Scores | None:
    terms = _terms(node)
    if terms is None:
        return None
    first, second, out = terms
    *batch, i, j = list(out)
    (one, left), (other, right) = (second, first) if i in second[1] else (first, second)
    inner = set(left) & set(right) - set(out)
    if len(inner) != 1:
        return None
    (d,) = inner
    query, key = _order(left, [*batch, i, d]), _order(right, [*batch, j, d])
    return Scores(Operand(one, query), Operand(other, key)) if query and key else None


def _spent_of_einsum(node: Any) -> list[Spent]:
    terms = _terms(node)
    if terms is None:
        return []
    first, second, out = terms
    found = []
    for (weights, left), (values, right) in ((first, second), (second, first)):
        if len(left) < 2:
            continue
        *batch, i, j = list(left)
        inner = set(right) - set(left)
        if len(inner) != 1 or j in out:
            continue
        (d,) = inner
        value, result = _order(right, [*batch, j, d]), _order([*batch, i, d], list(out))
        if value and result:
            found.append(Spent(weights, Operand(values, value), result))
    return found


def _terms(node: Any) -> tuple[tuple[Any, str], tuple[Any, str], str] | None:
    """The two operands with their letters, and the result's. None: more, fewer, or not written."""
    equation, *operands = node.args or ("",)
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = list(operands[0])
    if not isinstance(equation, str) or len(operands) != 2 or "->" not in equation:
        return None
    left, _, out = equation.replace(" ", "").partition("->")
    ranks = [len(shape(each)) for each in operands]
    first, second, out = _spelled_out([*left.split(","), out], ranks)
    is_odd = [len(first), len(second)] != ranks or len(out) < 2
    if is_odd or any(len(set(term)) != len(term) for term in (first, second, out)):
        return None
    return (operands[0], first), (operands[1], second), out


def _spelled_out(terms: list[str], ranks: list[int]) -> list[str]:
    """An ellipsis stands for the same dimensions wherever it is written."""
    counts = [
        rank - len(term) + 3 for rank, term in zip(ranks, terms, strict=False) if "..." in term
    ]
    unused = [letter for letter in string.ascii_letters if letter not in "".join(terms)]
    letters = "".join(unused[: max(counts, default=0)])
    return [term.replace("...", letters) for term in terms]


def _order(have: Any, want: list[str]) -> tuple[int, ...]:
    """How to permute one into the other; empty when they have not the same letters."""
    return tuple(list(have).index(letter) for letter in want) if set(have) == set(want) else ()
