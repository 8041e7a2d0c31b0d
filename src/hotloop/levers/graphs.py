"""How levers change what torch.compile captured, before it is compiled.

The compile lever hands torch a backend of ours only when somebody listens at the seam `captured`:
it tells them, and then does what torch's own would have done. A pass that Inductor runs itself
would keep the graph out of its cache; what is rewritten before it is cached as any other graph.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotloop.seams import Seam


@dataclass
class Captured:
    """A graph between its capture and its compilation. Listeners may change it in place."""

    graph: Any
    """A torch.fx.GraphModule, as Dynamo made it: torch's functions, not yet differentiated."""
    inputs: Sequence[Any]
    """Of its first call, in the order of its placeholders; real tensors."""
    owner: Any
    """The module that is compiled."""
    assumptions: list[Callable[[Sequence[Any]], bool]] = field(default_factory=list)
    """What a listener took for granted of the inputs. Asked at every call: they must be quick."""
    runs: int = 0
    """Calls of what was compiled."""
    strays: int = 0
    """Calls whose inputs were other than assumed: they ran the graph as it was captured."""

    def forget(self) -> None:
        """Once compiled: listeners keep this to see it run, and must not keep tensors alive."""
        self.graph, self.inputs, self.owner = None, (), None


class Backend:
    """What torch.compile is given in place of a mode."""

    def __init__(self, torch: Any, mode: str, owner: Any, seam: Seam) -> None:
        self._torch = torch
        self._compiler = inductor(torch, mode)
        self._owner = owner
        self._seam = seam
        self.__name__ = "hotloop"
        """For torch's own messages."""

    def __call__(self, graph: Any, inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
        began = time.perf_counter_ns()
        captured = Captured(graph, inputs, self._owner)
        plain = self._copy(graph)
        for tell in self._seam.before:
            tell((captured,), {})
        compiled = self._compiler(graph, inputs, **options)
        for told in self._seam.after:
            told((captured,), compiled, began)
        captured.forget()
        return _counted(compiled, plain if captured.assumptions else None, captured)

    def _copy(self, graph: Any) -> Any:
        """As it was captured, with the very tensors that the other one has."""
        return self._torch.fx.GraphModule(graph, copy.deepcopy(graph.graph))

    def reset(self) -> None:
        """torch._dynamo.reset() asks every backend; Inductor's gives its CUDA graphs back."""
        if hasattr(self._compiler, "reset"):
            self._compiler.reset()


def inductor(torch: Any, mode: str) -> Any:
    """What `torch.compile(mode=…)` would compile with."""
    return torch._TorchCompileInductorWrapper(mode, None, None)


def _counted(compiled: Any, plain: Any, captured: Captured) -> Callable[..., Any]:
    assumptions = tuple(captured.assumptions)

    def run(*args: Any) -> Any:
        for holds in assumptions:
            if not holds(args):
                captured.strays += 1
                return plain(*args)
        captured.runs += 1
        return compiled(*args)

    return run
