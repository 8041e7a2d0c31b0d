"""Attention, read backwards through a graph: from the values, through weights, to the scores.

Every result on the way must be used by the next operation alone. What is returned, logged or
averaged besides has to exist, and then nothing is won by a kernel that never makes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hotloop.levers.attention.nodes import (
    CASTS,
    VIEWS,
    NotUnderstood,
    dtype,
    given,
    in_place,
    is_dead,
    is_node,
    is_tensor,
    plain_name,
    shape,
)
from hotloop.levers.attention.products import PRODUCTS, Scores, Spent, read_scores, read_spent

MOST_STEPS = 24
"""Between the values and the scores. Longer ways are something else."""
COMMUTATIVE = {"mul", "multiply", "add"}
DIVISIONS = {"truediv", "div", "divide", "true_divide"}


@dataclass(frozen=True)
class Step:
    """One operation on the scores."""

    name: str
    node: Any
    other: Any
    """A number or another node: what it scales by, adds, or masks with."""
    fill: Any = None
    where: bool = True
    """Of a fill: whether it goes where the mask is true."""


@dataclass
class Attention:
    spent: Spent
    out: Any
    scores: Scores
    steps: list[Step]
    """From the scores to the softmax, in the order in which they are done."""
    dropout: float
    nodes: list[Any] = field(default_factory=list)
    """All of it, the last first."""


class Reader:
    """Of one graph."""

    def __init__(self, graph: Any) -> None:
        self._place = {node: index for index, node in enumerate(graph.nodes)}

    def read(self, out: Any) -> Attention | None:
        """The attention whose result this node is. None: it is the result of something else."""
        if plain_name(out) not in PRODUCTS or not is_tensor(out):
            return None
        for spent in read_spent(out):
            if is_tensor(spent.weights) and self._leads_to(spent.weights, {"softmax"}):
                return self._read(spent, out)
        return None

    def _read(self, spent: Spent, out: Any) -> Attention | None:
        nodes, dropout, after = [out], 0.0, out
        at = spent.weights
        while plain_name(at) != "softmax":
            if plain_name(at) == "dropout":
                dropout = _joined(dropout, at)
            source = _source_of_weights(at)
            self._require_alone(at, after)
            nodes.append(at)
            at, after = source, at
        if not self._leads_to(_first(at), PRODUCTS):
            return None
        _require_last(at)
        self._require_alone(at, after)
        nodes.append(at)
        return self._scores(spent, out, nodes, dropout)

    def _scores(self, spent: Spent, out: Any, nodes: list[Any], dropout: float) -> Attention:
        steps: list[Step] = []
        after = nodes[-1]
        at = _first(after)
        for _ in range(MOST_STEPS):
            for write in self._writes(at, after):
                steps.append(self._step(write, at))
                nodes.append(write)
            nodes.append(at)
            if plain_name(at) in PRODUCTS:
                scores = read_scores(at)
                if scores is None:
                    raise NotUnderstood("the product of its queries and keys is not understood")
                return Attention(spent, out, scores, steps[::-1], dropout, nodes)
            source = self._source(at)
            steps.append(self._step(at, source))
            at, after = source, at
        raise NotUnderstood("too much is done to its scores")

    def _writes(self, node: Any, after: Any) -> Iterator[Any]:
        """What was done to it in place, the last first; all other uses are somebody else's."""
        users = [user for user in node.users if user is not after and not is_dead(user)]
        place = self._place
        for user in sorted(users, key=lambda user: -place[user]):
            is_write = in_place(user) and _first(user) is node and not user.users
            if not is_write or place[user] > place[after]:
                raise NotUnderstood("its weights are used elsewhere")
            yield user

    def _require_alone(self, node: Any, after: Any) -> None:
        if any(self._writes(node, after)):
            raise NotUnderstood("its weights are changed in place")

    def _step(self, node: Any, source: Any) -> Step:
        name = plain_name(node)
        if name in CASTS or name in VIEWS or name == "contiguous":
            return Step("view" if name in VIEWS else "keep", node, None)
        if name == "masked_fill":
            return Step("fill", node, given(node, 1, "mask"), given(node, 2, "value"))
        if name == "where":
            return _where(node, source)
        if name in COMMUTATIVE or name in DIVISIONS or name == "sub":
            if node.kwargs.get("alpha", 1) != 1 or node.kwargs.get("rounding_mode"):
                raise NotUnderstood(f"a variant of {name} is done to its scores")
            first, second = given(node, 0, "input"), given(node, 1, "other")
            if second is source and name not in COMMUTATIVE:
                raise NotUnderstood("its scores are subtracted or divided by")
            kind = "add" if name == "add" else "subtract" if name == "sub" else "multiply"
            kind = "divide" if name in DIVISIONS else kind
            return Step(kind, node, second if first is source else first)
        raise NotUnderstood(f"{name or node.op} is done to its scores, which is not understood")

    def _source(self, node: Any) -> Any:
        """Which of its arguments are the scores: as large as its result, and made by a product."""
        nodes = [each for each in (*node.args, *node.kwargs.values()) if is_tensor(each)]
        same = [each for each in nodes if shape(each) == shape(node) or plain_name(node) in VIEWS]
        for each in same:
            if self._leads_to(each, PRODUCTS):
                return each
        raise NotUnderstood(f"its scores come from {plain_name(node) or node.op}")

    def _leads_to(self, node: Any, names: set[str]) -> bool:
        """Whether such an operation made it, by way of others that keep its size."""
        pending, steps = [node], 0
        while pending and steps < MOST_STEPS * 2:
            at, steps = pending.pop(0), steps + 1
            if plain_name(at) in names:
                return True
            if plain_name(at) in ON_THE_WAY:
                arguments = (*at.args, *at.kwargs.values())
                pending += [each for each in arguments if is_tensor(each)]
        return False


ON_THE_WAY = {
    *CASTS,
    *VIEWS,
    *COMMUTATIVE,
    *DIVISIONS,
    *("sub", "masked_fill", "where", "contiguous", "dropout"),
}


def _first(node: Any) -> Any:
    return given(node, 0, "input")


def _source_of_weights(node: Any) -> Any:
    name = plain_name(node)
    if name in CASTS or name in ("dropout", "contiguous"):
        return _first(node)
    if name in VIEWS and shape(node)[-2:] == shape(_first(node))[-2:]:
        return _first(node)
    raise NotUnderstood(f"{name or node.op} is done to its weights, which is not understood")


def _joined(dropout: float, node: Any) -> float:
    """The probability as captured: dropout in evaluation is still there, and does nothing."""
    p, training = given(node, 1, "p", 0.5), given(node, 2, "training", True)
    if node.op == "call_function" and "train" in node.kwargs:
        training = node.kwargs["train"]
    if is_node(p) or is_node(training) or (dropout and training):
        raise NotUnderstood("its dropout is not understood")
    if training and p >= 1:
        raise NotUnderstood("its dropout drops everything")
    return float(p) if training else dropout


def _require_last(node: Any) -> None:
    """The softmax must go over the keys."""
    dim, rank = given(node, 1, "dim"), len(shape(node))
    if not isinstance(dim, int) or dim % rank != rank - 1:
        raise NotUnderstood("its softmax does not go over the keys")
    if str(dtype(node)) == "torch.float64" != str(dtype(_first(node))):
        raise NotUnderstood("its softmax is computed in float64")


def _where(node: Any, source: Any) -> Step:
    """`torch.where(mask, scores, fill)`, the other way round, or `scores.where(mask, fill)`."""
    if node.op == "call_method":
        scores, mask, fill = node.args
    else:
        mask, scores, fill = (
            given(node, i, n) for i, n in enumerate(("condition", "input", "other"))
        )
    if fill is source:
        return Step("fill", node, mask, scores)
    if mask is source:
        raise NotUnderstood("its scores choose something")
    return Step("fill", node, mask, fill, where=False)
