"""A change to a captured graph that is tried on a copy first: what would not run is left alone."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from hotloop.levers.attention.nodes import example
from hotloop.levers.graphs import Captured


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
