"""The model compiled in place by torch.compile, forward and backward, at its first training call.

Checkpoints keep their names and the model can be pickled; a copy of it is not compiled. Compiled
dropout draws other masks than eager dropout does from the same seed.
"""

from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import NO_MODEL, Effect, Expectation, Group, Lever, Receipt, Seen, refuse
from hotloop.levers.graphs import Backend
from hotloop.levers.in_place import compile_in_place, is_compiled
from hotloop.levers.no_graph import NoGraph

if TYPE_CHECKING:
    from hotloop.seams import Seam, Seams

TUNING = "max-autotune-no-cudagraphs"
QUICK_MODES = ("default", "reduce-overhead")
MODES = (*QUICK_MODES, TUNING)
ON_A_CPU = {
    "reduce-overhead": "CUDA graphs need a GPU",
    TUNING: "torch has no kernels to choose from on a CPU",
}
"""Why a mode does nothing there."""
TUNED = "select_algorithm_autotune"
"""torch's count of the products whose kernels were measured against each other. None are where all
were measured before: the results are kept on disk."""
LEAST_IDLE = 0.02
"""The share of a step that a GPU waits for its CPU before replaying kernels is worth a trial. With
less it is worth one only when the job has become much faster: by then it may wait."""
GAIN = 0.3
"""Of the model's own passes: what fusing commonly wins. Only a trial can tell."""


@dataclass
class Compile(Lever):
    name = "compile"
    summary = "the model compiled in place by torch.compile"
    group = Group.GRAPH
    effect = Effect.SAME_MATH
    not_for_memory = ""
    compiles = True

    mode: str = "default"
    """"default"; "reduce-overhead", which replays the kernels as CUDA graphs; or
    "max-autotune-no-cudagraphs", which measures several kernels for each product."""
    dynamic: bool = False
    """Compiled for all sizes at once, not for those of the first batch."""

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._no_graph: NoGraph
        self._captured: Seam | None = None
        self._compiling: Seam | None = None
        self._compiled: list[weakref.ref[Any]] = []
        self._before: tuple[int, int] | None = None
        self._why_not = NO_MODEL
        self._graphs = self._breaks = self._captures = 0

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{"mode": mode} for mode in (QUICK_MODES if _waits(seen) else QUICK_MODES[:1])]

    @classmethod
    def dear_settings(cls, seen: Seen) -> list[dict[str, Any]]:
        """Tuning takes minutes; sizes that change are seen to by torch itself, at the second."""
        tuned = [{"mode": TUNING}] if seen.on_gpu else []
        return [*tuned, {"mode": "default", "dynamic": True}]

    @classmethod
    def late_changes(cls, seen: Seen) -> list[dict[str, Any]]:
        """A GPU that was always busy may wait for its CPU once its own work takes less time."""
        return [] if _waits(seen) or not seen.on_gpu else [{"mode": "reduce-overhead"}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        if seen.is_compiled:
            return refuse("the script already compiles its model")
        if not seen.measurement.inventory.models:
            return refuse(NO_MODEL)
        return Expectation(seen.share("forward", "backward") * GAIN)

    def problem(self) -> str:
        if self.mode in MODES:
            return ""
        return f"there is no mode {self.mode!r}: it is one of {', '.join(MODES)}"

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch, self._no_graph = torch, NoGraph()
        self._captured, self._compiling = seams.captured, seams.compiling
        seams.loop.after.append(self._begun)
        seams.model.before.append(self._call)
        seams.model.after.append(self._called)
        if self.mode == "reduce-overhead":
            seams.step.after.append(self._mark)

    def receipt(self) -> Receipt:
        if not self._compiled:
            return self.not_applied(self._why_not)
        if not self._graphs:
            return self.not_applied(self._no_graph.reason())
        evidence: dict[str, int | float | str | bool] = {
            "graphs": self._graphs,
            "graph_breaks": self._breaks,
            "recompilations": max(0, self._captures - len(self._compiled)),
        }
        if self.mode == TUNING:
            evidence["tuned"] = self._torch._dynamo.utils.counters["inductor"][TUNED]
        if self.mode == "reduce-overhead":
            skips = self._torch._dynamo.utils.counters["inductor"]["cudagraph_skips"]
            evidence |= {"cuda_graphs": cuda_graphs(self._torch), "cuda_graph_skips": skips}
            if not evidence["cuda_graphs"]:
                return self.not_applied(f"no CUDA graph was recorded, {skips} were skipped")
        return self.applied(**evidence)

    def _begun(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        """A loop of ours: others may put more into the module that it calls."""
        args[0].is_compiled = True

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        module = args[0]
        known = self._is_ours(module)
        if not known and self._torch.is_grad_enabled():
            known = self._compile(module)
        self._before = self._counts() if known else None

    def _called(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        """Counted from call to call: the script may compile something else of its own."""
        if self._before is not None:
            graphs, breaks = self._counts()
            self._graphs += graphs - self._before[0]
            self._breaks += breaks - self._before[1]
            self._captures += graphs > self._before[0]

    def _mark(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        """What the last step's graphs wrote may be overwritten from here on."""
        if self._compiled:
            self._torch.compiler.cudagraph_mark_step_begin()

    def _compile(self, module: Any) -> bool:
        self._why_not = self._reason_not_to(module)
        if self._why_not:
            return False
        asked: dict[str, Any] = {"later": False, "around": None}
        for ask in self._compiling.before if self._compiling else ():
            ask((module,), asked)
        if asked["later"]:
            self._why_not = "the model was not called often enough"
            return False
        compile_in_place(self._torch, module, asked["around"], **self._how(module))
        self._compiled.append(weakref.ref(module))
        return True

    def _how(self, module: Any) -> dict[str, Any]:
        """By torch's own backend, unless another lever wants to see the graphs."""
        sizes = {"dynamic": True} if self.dynamic else {}
        if self._captured is None or not self._captured.is_used:
            return {"mode": self.mode, **sizes}
        return {"backend": Backend(self._torch, self.mode, module, self._captured), **sizes}

    def _reason_not_to(self, module: Any) -> str:
        if is_compiled(module):
            return "the script already compiles its model"
        weight = next(module.parameters(), None)
        on_gpu = weight is not None and weight.is_cuda
        return "" if on_gpu else ON_A_CPU.get(self.mode, "")

    def _is_ours(self, module: Any) -> bool:
        return any(known() is module for known in self._compiled)

    def _counts(self) -> tuple[int, int]:
        """Graphs captured in this process so far, and breaks between them."""
        counters = self._torch._dynamo.utils.counters
        return counters["stats"]["unique_graphs"], sum(counters["graph_break"].values())


def cuda_graphs(torch: Any) -> int:
    """Recorded, for all devices. Warm-up runs before a recording are none."""
    trees = sys.modules.get("torch._inductor.cudagraph_trees")
    if trees is None:
        return 0
    managers = [trees.get_manager(i, False) for i in range(torch.cuda.device_count())]
    pending = [
        node for each in managers if each for nodes in (each.roots or {}).values() for node in nodes
    ]
    count = 0
    while pending:
        node = pending.pop()
        count += node.graph is not None
        pending += [child for children in node.children.values() for child in children]
    return count


def _waits(seen: Seen) -> bool:
    """Whether there is a GPU, and it waits for its CPU."""
    return seen.on_gpu and seen.gpu_idle >= LEAST_IDLE
