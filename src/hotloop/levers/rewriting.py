"""A change to a captured graph that is tried on a copy first: what would not run is left alone."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from hotloop.levers.attention.nodes import example, name_of
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
            return f"the captured graphs were not seen to have {self._what}"
        return f"{self._what} was found, but {self._reasons.most_common(1)[0][0]}"


def asked(graph: Any, ask: Callable[[Any], Any]) -> list[tuple[Any, Any]]:
    """Each node that is meant, and how it is to be rewritten, or a text, why not."""
    return [(node, how) for node in graph.nodes if (how := ask(node)) is not None]


def replaced(graph: Any, ask: Callable[[Any], Any], replace: Callable[[Any, Any], None]) -> int:
    """How many, by `replace(node, how)`."""
    found = [(node, how) for node, how in asked(graph, ask) if not isinstance(how, str)]
    for node, how in found:
        replace(node, how)
    return len(found)


def rewritten(
    torch: Any, captured: Captured, rewrite: Callable[[Any], int], reorders: bool = False
) -> int:
    """How much `rewrite` has changed in the graph that it is given; 0 where that would not run.

    The rest of a graph may rely on the order in memory that something had: `view` does, and of
    `as_strided` nobody would notice. So may whoever is handed its results, unless another order is
    what it is done for: `reorders`.
    """
    if any(name_of(node) == "as_strided" for node in captured.graph.graph.nodes):
        return 0
    attempt = copy.deepcopy(captured.graph.graph)
    found = rewrite(attempt)
    output = next(node for node in captured.graph.graph.nodes if node.op == "output")
    wanted = None if reorders else torch.fx.node.map_arg(output.args[0], example)
    if not found or not _runs(torch, torch.fx.GraphModule(captured.graph, attempt), wanted):
        return 0
    # Not the copy itself: it lacks what torch remembers of the original's nodes.
    rewrite(captured.graph.graph)
    captured.graph.graph.lint()
    captured.graph.recompile()
    return found


def _runs(torch: Any, attempt: Any, wanted: Any) -> bool:
    """To results that lie as these do, if there are any."""
    from torch._dispatch.python import enable_python_dispatcher

    given_to = [example(node) for node in attempt.graph.nodes if node.op == "placeholder"]
    modes = (getattr(value, "fake_mode", None) for value in given_to)
    mode = next((mode for mode in modes if mode is not None), None)
    if mode is None:
        return False
    try:
        # As torch itself traces: otherwise a size that may change is taken for what it is now, and
        # with every other the model is compiled again.
        with mode, enable_python_dispatcher():
            made = torch.fx.Interpreter(attempt).run(*given_to)
        return wanted is None or _places(torch, made) == _places(torch, wanted)
    except Exception:  # whatever it is, it would end the job
        return False


def _places(torch: Any, results: Any) -> list[list[tuple[str, str]]]:
    """How each lies in memory. By names: comparing sizes that may change would fix them."""
    tensors = [one for one in torch.utils._pytree.tree_leaves(results) if torch.is_tensor(one)]
    return [
        [
            (str(size), str(stride))
            for size, stride in zip(one.shape, one.stride(), strict=True)
            if str(size) != "1"
        ]
        for one in tensors
    ]
