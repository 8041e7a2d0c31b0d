"""The loss compiled: torch's loss function that the script calls on what its model returned.

Uncompiled, the cast to float32, the logarithm of the softmax and their ways back each go over all
logits and write as many numbers again. Compiled they are fused, and none of that is kept. The
script calls the same function with the same arguments; only who computes it is changed.

In a loop of ours whose model is compiled, model and loss become one graph: then logits need not
even be written as the model's result and read as the loss's.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import NOT_LOOKED, Effect, Expectation, Group, Lever, Receipt, Seen, refuse
from hotloop.levers.graphs import Backend, Captured
from hotloop.levers.no_graph import NoGraph
from hotloop.seams import Seam

if TYPE_CHECKING:
    from hotloop.inspection import LossSeen
    from hotloop.seams import Seams

PASSES = {"cross_entropy": (7, 3), "nll_loss": (2, 2)}
"""How often all numbers of the input are read or written, forward and backward: as torch's own
operators do it, in float32, and fused, in the format that the input has."""
OF_TWO_INPUTS = (7, 5)
FLOAT32 = 4
"""Bytes. What has fewer is cast first, and its gradient is cast back."""


@dataclass
class CompileLoss(Lever):
    name = "compile_loss"
    summary = "the loss compiled, so that logits are gone over fewer times"
    group = Group.GRAPH
    effect = Effect.SAME_MATH
    not_for_memory = ""
    compiles = True
    conflicts = ("chunked_loss",)

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._no_graph: NoGraph
        self._backend: Any = None
        self._compiled: dict[str, Any] = {}
        self._graphs: list[Captured] = []
        self._inside = self._trained = self._again = self._joined = False
        self._calls = 0
        self._why_not = "no loss function of torch's was called on what a model returned"

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        """By the bytes that fusing spares, of all that a step reads and writes."""
        looked = seen.inspection
        if looked is None or looked.operators is None or not looked.operators.bytes:
            return refuse(f"the job's loss is not known: {NOT_LOOKED}")
        outside = [one for one in looked.losses if not one.inside_model]
        if not outside and looked.losses:
            return refuse("the model computes its loss itself, and is compiled with it")
        if not outside:
            return refuse("no loss function of torch's was seen")
        spared = sum(map(_spared, outside)) / looked.operators.bytes
        return Expectation(seen.share("forward", "backward") * min(1.0, spared))

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch, self._no_graph = torch, NoGraph()
        seams.loop.after.append(lambda args, result, began: self._join(args[0], seams))
        seams.model.before.append(self._enter)
        seams.model.after.append(self._leave)
        seams.loss.before.append(self._compute)
        seams.backward.before.append(lambda args, kwargs: self._differentiate(args[2:4], kwargs))
        seams.grad.before.append(lambda args, kwargs: self._differentiate(args[3:5], kwargs))

    def receipt(self) -> Receipt:
        if not self._calls and not self._joined:
            return self.not_applied(self._why_not)
        if not self._graphs:
            return self.not_applied(self._no_graph.reason())
        runs = sum(graph.runs for graph in self._graphs)
        if not runs:
            return self.not_applied("no compiled loss ran")
        if self._joined:
            return self.applied(functions="with the model", graphs=len(self._graphs), runs=runs)
        return self.applied(
            functions=", ".join(sorted(self._compiled)),
            graphs=len(self._graphs),
            runs=runs,
            uncompiled=self._calls - runs,
        )

    def _join(self, loop: Any, seams: Seams) -> None:
        if loop.is_compiled:
            self._joined = True
            seams.captured.after.append(self._captured)
            loop.join()

    def _captured(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        self._graphs.append(args[0])

    def _enter(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._inside = True
        self._trained = self._trained or self._torch.is_grad_enabled()

    def _leave(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        self._inside = False

    def _differentiate(self, keeps: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Seen in the first pass, when no loss is compiled yet: that is when models are found."""
        named = (kwargs.get("retain_graph"), kwargs.get("create_graph"))
        if any((*keeps, *named)) and not _is_transformed(self._torch):
            self._again = True

    def _compute(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        original = kwargs["by"]
        if original.__module__ != "torch.nn.functional":
            return  # somebody else computes it
        if not self._is_ours((*args, *kwargs.values())):
            return
        self._calls += 1
        name = original.__name__
        if name not in self._compiled:
            self._compiled[name] = self._compile(original)
        kwargs["by"] = self._compiled[name]

    def _compile(self, original: Any) -> Any:
        if self._backend is None:
            captured = Seam(after=[self._captured])
            self._backend = Backend(self._torch, "default", None, captured)
        return self._torch.compile(_apart(original), backend=self._backend)

    def _is_ours(self, values: tuple[Any, ...]) -> bool:
        """What is differentiated, outside a model: plain tensors, as the script has them."""
        torch = self._torch
        if self._joined:
            return False
        if self._inside:
            self._why_not = "the model computes its loss itself"
        elif self._again:
            self._why_not = "the script differentiates again, which compiled code may refuse"
        if self._inside or self._again or not self._trained or not torch.is_grad_enabled():
            return False
        tensors = [value for value in values if isinstance(value, torch.Tensor)]
        plain = (torch.Tensor, torch.nn.Parameter)
        if _is_transformed(torch) or not all(type(tensor) in plain for tensor in tensors):
            self._why_not = (
                "the loss is computed under torch.func, or on tensors of a kind of their own"
            )
            return False
        return any(tensor.requires_grad for tensor in tensors)


def _is_transformed(torch: Any) -> bool:
    """Inside torch.func, which has its own way of differentiating."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def _apart(original: Any) -> Any:
    """A function of its own code each: by that torch counts how often it compiled anew."""

    def loss(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs)

    code = loss.__code__.replace(co_name=original.__name__)
    return FunctionType(code, loss.__globals__, original.__name__, None, loss.__closure__)


def _spared(loss: LossSeen) -> float:
    """Bytes that need not be read or written when it is fused."""
    eager, fused = PASSES.get(loss.function, OF_TWO_INPUTS)
    casts = 2 * (loss.itemsize + FLOAT32) if loss.itemsize < FLOAT32 else 0
    wide = max(loss.itemsize, FLOAT32)
    return loss.elements * max(0, eager * wide + casts - fused * loss.itemsize)
