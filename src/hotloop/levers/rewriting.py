"""A change to a captured graph that is tried on a copy first: what would not run is left alone."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hotloop.levers.attention.nodes import example
from hotloop.levers.graphs import Captured


class Rewrites:
    """What became of what was looked for in the graphs of a job."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._graphs: list[tuple[Captured, int]] = []
        """And how many were rewritten in it."""
        self._reasons: Counter[str] = Counter()
        """Why others were not."""

    def note(self, captured: Captured, count: int, asked: Sequence[Any]) -> None:
        """`asked`: of each that was found how it is to be rewritten, or a text, why not."""
        self._graphs.append((captured, count))
        self._reasons.update(reason for reason in asked if isinstance(reason, str))
        if not count and not all(isinstance(one, str) for one in asked):
            self._reasons["the rest of its graph would not run with another"] += 1

    def evidence(self, name: str) -> dict[str, int]:
        """Of graphs that ran. Empty: nothing was rewritten in those."""
        ran = [(graph, count) for graph, count in self._graphs if graph.runs and count]
        if not ran:
            return {}
        found = {name: sum(count for _, count in ran), "left_alone": self._reasons.total()}
        return found | {"runs": sum(graph.runs for graph, _ in ran)}

    @property
    def why_not(self) -> str:
        if not self._graphs:
            return "no graph was captured"
        if any(count for _, count in self._graphs):
            return f"no graph with {self._what} in it ran"
        if not self._reasons:
            return f"no {self._what.removeprefix('such a ')} was found in the captured graphs"
        return f"{self._what} was found, but {self._reasons.most_common(1)[0][0]}"


def rewritten_in_order(torch: Any, captured: Captured, rewrite: Callable[..., int]) -> int:
    """`rewrite(orders, graph)` with the orders in which results are to lie, by their directions.

    Those of the weights and inputs, unless the rest of the graph relies on the plain one.
    """
    for orders in (_channels_last(torch, captured), {}):
        if count := rewritten(torch, captured, partial(rewrite, orders)):
            return count
    return 0


def _channels_last(torch: Any, captured: Captured) -> dict[int, Any]:
    orders = {2: torch.channels_last, 3: torch.channels_last_3d}
    return {
        directions: order
        for directions, order in orders.items()
        if any(
            isinstance(one, torch.Tensor)
            and one.dim() == directions + 2
            and one.is_contiguous(memory_format=order)
            and not one.is_contiguous()
            for one in captured.inputs
        )
    }


def rewritten(torch: Any, captured: Captured, rewrite: Callable[[Any], int]) -> int:
    """How much `rewrite` has changed in the graph that it is given; 0 where that would not run.

    The rest of a graph may rely on the order in memory that something had: `view` does.
    """
    attempt = copy.deepcopy(captured.graph.graph)
    found = rewrite(attempt)
    if not found or not _runs(torch, torch.fx.GraphModule(captured.graph, attempt)):
        return 0
    # Not the copy itself: it lacks what torch remembers of the original's nodes.
    rewrite(captured.graph.graph)
    captured.graph.graph.lint()
    captured.graph.recompile()
    return found


def _runs(torch: Any, attempt: Any) -> bool:
    given_to = [example(node) for node in attempt.graph.nodes if node.op == "placeholder"]
    modes = (getattr(value, "fake_mode", None) for value in given_to)
    mode = next((mode for mode in modes if mode is not None), None)
    if mode is None:
        return False
    try:
        with mode:
            torch.fx.Interpreter(attempt).run(*given_to)
    except Exception:  # whatever it is, it would end the job
        return False
    return True
