"""Nearest upsampling written as repetition in the graph that is compiled.

torch takes it apart into reads at computed places. The way back is then a scattered addition, into
which the compiler can fuse nothing. And a volume comes out with its channels first, whatever the
order of its input. A repetition of every value reads the same; its way back is the sum of a few
neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from hotloop.levers.attention.nodes import dtype, example, given, is_node, name_of
from hotloop.levers.base import (
    GRAPHS_UNSEEN,
    NOT_LOOKED,
    Effect,
    Expectation,
    Group,
    Lever,
    Receipt,
    Seen,
    refuse,
)
from hotloop.levers.rewriting import Rewrites, asked, replaced, rewritten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotloop.levers.graphs import Captured
    from hotloop.seams import Seams

GAIN = 0.15
"""Of the model's own passes. Only a trial can tell."""
OPERATORS = tuple(f"upsample_nearest{d}d" for d in (1, 2, 3)) + tuple(
    f"_upsample_nearest_exact{d}d" for d in (1, 2, 3)
)
MODES = ("nearest", "nearest-exact")
FACTORS = (1, 2, 4, 8, 16)
"""With these both modes repeat each value as often: by others a place may be rounded."""


@dataclass
class FusedUpsampling(Lever):
    name = "fused_upsampling"
    summary = "nearest upsampling as plain repetition in compiled code"
    group = Group.GRAPH
    effect = Effect.SAME_MATH
    not_for_memory = ""
    requires = ("compile",)

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._rewrites = Rewrites("upsampling")

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        operators = seen.inspection.operators if seen.inspection else None
        if operators is None:
            return refuse(f"whether the job upsamples is not known: {NOT_LOOKED}")
        if not any(name in operators.by_name for name in OPERATORS):
            return refuse("the job was not seen to upsample to the nearest")
        if seen.is_compiled:
            return refuse(GRAPHS_UNSEEN)
        return Expectation(seen.share("forward", "backward") * GAIN)

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch = torch
        seams.captured.before.append(self._rewrite)

    def receipt(self) -> Receipt:
        evidence = self._rewrites.evidence("upsamplings")
        return self.applied(**evidence) if evidence else self.not_applied(self._rewrites.why_not)

    def _rewrite(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        captured: Captured = args[0]
        found = [how for _, how in asked(captured.graph.graph, _factors)]
        count = 0
        # In the order of its weights, unless the rest of the graph relies on the plain one.
        for orders in dict.fromkeys((_channels_last(self._torch, captured), frozenset[int]())):
            count = count or rewritten(self._torch, captured, partial(self._repeat_all, orders))
        self._rewrites.note(captured, count, found)

    def _repeat_all(self, orders: frozenset[int], graph: Any) -> int:
        return replaced(graph, _factors, partial(_repeat, self._torch, graph, orders))


def _factors(node: Any) -> tuple[int, ...] | str | None:
    """How often each value is repeated in each direction; or why that is not known.

    None: it does something else.
    """
    if node.op != "call_function" or name_of(node) not in ("interpolate", "upsample"):
        return None
    if given(node, 3, "mode", "nearest") not in MODES:
        return "it is not to the nearest"
    x = given(node, 0, "input")
    before, after = example(x) if is_node(x) else None, example(node)
    if before is None or after is None:
        return "its sizes are not known"
    sizes = [*before.shape[2:], *after.shape[2:]]
    if not all(type(size) is int for size in sizes):
        return "its sizes change from call to call"
    pairs = list(zip(before.shape[2:], after.shape[2:], strict=True))
    factors = tuple(new // old if old else 0 for old, new in pairs)
    exact = all(old * factor == new for (old, new), factor in zip(pairs, factors, strict=True))
    if not exact or not set(factors) <= set(FACTORS) or not _is_asked_for(node, factors):
        return "it is not by 2, 4, 8 or 16"
    return factors


def _is_asked_for(node: Any, factors: Sequence[int]) -> bool:
    """By 2.1 four values become eight as well, but others of them."""
    scale = given(node, 2, "scale_factor")
    if scale is None or given(node, 5, "recompute_scale_factor"):
        return True
    scales = scale if isinstance(scale, list | tuple) else [scale] * len(factors)
    return all(
        isinstance(one, int | float) and one == factor
        for one, factor in zip(scales, factors, strict=True)
    )


def _channels_last(torch: Any, captured: Captured) -> frozenset[int]:
    """In how many directions its weights or inputs have that order: the results are to as well."""
    orders = {2: torch.channels_last, 3: torch.channels_last_3d}
    return frozenset(
        directions
        for directions, order in orders.items()
        for one in captured.inputs
        if isinstance(one, torch.Tensor)
        and one.dim() == directions + 2
        and one.is_contiguous(memory_format=order)
        and not one.is_contiguous()
    )


def _repeat(
    torch: Any, graph: Any, orders: frozenset[int], node: Any, factors: Sequence[int]
) -> None:
    """A dimension of one behind each direction, expanded, and the two made one."""
    channels_last = len(factors) in orders
    first = 1 if channels_last else 2
    x = given(node, 0, "input")
    with graph.inserting_before(node):
        # On a GPU autocast has it done in 32 bits, and what comes behind it is computed so.
        same = dtype(x) == dtype(node)
        made = x if same else graph.call_method("to", (x, dtype(node)))
        made = graph.call_method("movedim", (made, 1, -1)) if channels_last else made
        for index in range(len(factors)):
            made = graph.call_method("unsqueeze", (made, first + 2 * index + 1))
        sizes = [-1] * (2 + 2 * len(factors))
        sizes[first + 1 : first + 2 * len(factors) : 2] = factors
        made = graph.call_method("expand", (made, *sizes))
        # Of one pixel all repetitions would be that pixel, and so would what is written to them.
        made = graph.call_method("clone", (made,), {"memory_format": torch.contiguous_format})
        for index in range(len(factors)):
            made = graph.call_method("flatten", (made, first + index, first + index + 1))
        if channels_last:
            made = graph.call_method("movedim", (made, -1, 1))
    made.meta.update(node.meta)
    node.replace_all_uses_with(made)
    graph.erase_node(node)
