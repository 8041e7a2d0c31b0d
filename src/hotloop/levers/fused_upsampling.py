"""Nearest upsampling written as repetition in the graph that is compiled.

torch takes it apart into reads at computed places. The way back is then a scattered addition, into
which the compiler can fuse nothing, and which in 16 bits it leaves to a kernel that sorts all
places first. And a volume comes out with its channels first, whatever the order of its input. A
repetition of every value reads the same; its way back is the sum of a few neighbours.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotloop.levers.attention.nodes import example, given, is_node, name_of
from hotloop.levers.base import Effect, Expectation, Group, Lever, Receipt, Seen, refuse

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
    requires = ("compile",)

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._graphs: list[tuple[Captured, int]] = []
        """And how many were rewritten in it."""
        self._reasons: Counter[str] = Counter()

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        operators = seen.inspection.operators if seen.inspection else None
        if operators is None:
            return refuse("it was not looked into, so it is not known whether it upsamples")
        if not any(name in operators.by_name for name in OPERATORS):
            return refuse("it was not seen to upsample to the nearest")
        if any(model.compiled for model in seen.measurement.inventory.models):
            return refuse("the script compiles its model itself, and its graphs are not seen")
        return Expectation(seen.share("forward", "backward") * GAIN)

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch = torch
        seams.captured.before.append(self._rewrite)

    def receipt(self) -> Receipt:
        if not self._graphs:
            return self.not_applied("no graph was captured")
        ran = [(graph, count) for graph, count in self._graphs if graph.runs and count]
        if ran:
            return self.applied(
                upsamplings=sum(count for _, count in ran),
                left_alone=self._reasons.total(),
                runs=sum(graph.runs for graph, _ in ran),
            )
        if any(count for _, count in self._graphs):
            return self.not_applied("no graph with upsampling in it ran")
        if not self._reasons:
            return self.not_applied("no upsampling was found in the captured graphs")
        return self.not_applied(f"upsampling was found, but {self._reasons.most_common(1)[0][0]}")

    def _rewrite(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        captured: Captured = args[0]
        graph = captured.graph.graph
        count = 0
        for node in [node for node in graph.nodes if _upsamples(node)]:
            factors = _factors(node)
            if isinstance(factors, str):
                self._reasons[factors] += 1
                continue
            last = _has_channels_last(self._torch, captured, len(factors))
            _repeat(self._torch, graph, node, factors, last)
            count += 1
        if count:
            graph.lint()
            captured.graph.recompile()
        self._graphs.append((captured, count))


def _upsamples(node: Any) -> bool:
    return node.op == "call_function" and name_of(node) in ("interpolate", "upsample")


def _factors(node: Any) -> tuple[int, ...] | str:
    """How often each value is repeated in each direction; or why that is not known."""
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
    factors = tuple(new // old for old, new in pairs)
    exact = all(old * factor == new for (old, new), factor in zip(pairs, factors, strict=True))
    if not exact or not set(factors) <= set(FACTORS):
        return "it is not by 2, 4, 8 or 16"
    return factors


def _has_channels_last(torch: Any, captured: Captured, directions: int) -> bool:
    """Whether that is the order of its weights or inputs: the result is to have it too."""
    orders = {2: torch.channels_last, 3: torch.channels_last_3d}
    order = orders.get(directions)
    return order is not None and any(
        isinstance(one, torch.Tensor)
        and one.dim() == directions + 2
        and one.is_contiguous(memory_format=order)
        and not one.is_contiguous()
        for one in captured.inputs
    )


def _repeat(torch: Any, graph: Any, node: Any, factors: Sequence[int], channels_last: bool) -> None:
    """A dimension of one behind each direction, expanded, and the two made one."""
    first = 1 if channels_last else 2
    x = given(node, 0, "input")
    with graph.inserting_before(node):
        made = graph.call_method("movedim", (x, 1, -1)) if channels_last else x
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
