"""The repeated blocks of a model compiled, each in place, by one compilation for all of them.

Compiling a whole transformer takes as long as it has layers. Its layers are alike, so what is
compiled for the first serves the others: the weights are inputs of the compiled code.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import NO_MODEL, Effect, Expectation, Group, Lever, Receipt, Seen, refuse
from hotloop.levers.blocks import LEAST as ALIKE
from hotloop.levers.blocks import repeated_blocks
from hotloop.levers.graphs import Backend, Captured
from hotloop.levers.in_place import compile_in_place, is_compiled
from hotloop.levers.no_graph import NoGraph
from hotloop.seams import Seam

if TYPE_CHECKING:
    from hotloop.seams import Seams

GAIN = 0.25
"""Of the model's own passes: what fusing wins inside blocks. Between them nothing is fused."""
ALREADY = "the script already compiles its model, or its blocks"


@dataclass
class CompileBlocks(Lever):
    name = "compile_blocks"
    summary = "a model's repeated blocks compiled, once for all of them"
    group = Group.GRAPH
    effect = Effect.SAME_MATH
    not_for_memory = ""
    compiles = True
    conflicts = ("compile", "checkpoint_blocks")

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._no_graph: NoGraph
        self._backend: Any = None
        self._met: list[weakref.ref[Any]] = []
        self._graphs: list[Captured] = []
        self._blocks = self._groups = 0
        self._first: tuple[int, int] | None = None
        """Graphs captured and run during the first call of a model whose blocks are compiled."""
        self._why_not = NO_MODEL

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        models = seen.measurement.inventory.models
        if seen.is_compiled:
            return refuse("the script already compiles its model")
        if not any(model.blocks for model in models):
            return refuse(f"no model was seen to have {ALIKE} or more blocks alike")
        return Expectation(seen.share("forward", "backward") * GAIN)

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch, self._no_graph = torch, NoGraph()
        seams.model.before.append(self._call)
        seams.model.after.append(self._called)

    def receipt(self) -> Receipt:
        if not self._blocks:
            return self.not_applied(self._why_not)
        if self._first is None or not self._graphs:
            return self.not_applied(self._no_graph.reason())
        graphs, runs = self._first
        if graphs == runs:
            return self.not_applied("no block was served by what was compiled for another")
        return self.applied(
            blocks=self._blocks,
            kinds=self._groups,
            graphs=len(self._graphs),
            runs=sum(graph.runs for graph in self._graphs),
        )

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        root = args[0]
        if self._torch.is_grad_enabled() and not any(known() is root for known in self._met):
            self._met.append(weakref.ref(root))
            self._compile(root)

    def _called(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        if self._first is None and self._graphs:
            self._first = len(self._graphs), sum(graph.runs for graph in self._graphs)

    def _compile(self, root: Any) -> None:
        groups = repeated_blocks(root)
        blocks = [block for group in groups for block in group.blocks]
        if not blocks:
            self._why_not = f"the model has fewer than {ALIKE} blocks alike"
        elif any(map(is_compiled, root.modules())):
            self._why_not = ALREADY
        else:
            for block in blocks:
                compile_in_place(self._torch, block, backend=self._one_backend())
            self._blocks += len(blocks)
            self._groups += len(groups)

    def _one_backend(self) -> Any:
        """The same for all: torch takes what was compiled by another for something else."""
        if self._backend is None:
            captured = Seam()
            captured.after.append(lambda args, result, began: self._graphs.append(args[0]))
            self._backend = Backend(self._torch, "default", None, captured)
        return self._backend
