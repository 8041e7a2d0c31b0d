"""No gradient for what a compiled model returns besides what the script differentiates.

A language model that computes its own loss returns its logits with it, and the script looks only at
the loss. Compiled code wants a gradient for everything that it returned: as many zeros as there are
logits are written at each step, read again and added. Once it was seen that a result is never
differentiated, it leaves the compiled code without a way back. Should the script differentiate it
after all, it is told so by an error: no gradient is lost in silence.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import Effect, Expectation, Group, Lever, Receipt, Seen, refuse

if TYPE_CHECKING:
    from hotloop.levers.in_place import Around
    from hotloop.seams import Seams

PATIENCE = 4
"""Calls that are waited for a backward pass to tell what is differentiated."""
MOST_NODES = 10_000
"""Between a loss and what a model returned. Scripts have a few there; a whole model has more."""
PASSES = 3
"""Over all logits that are spared: zeros written, read, and added."""
DIFFERENTIATED = (
    "hotloop: the plan's optimisation unused_outputs has seen that this result of the model is "
    "never differentiated, and now it is. Train with a plan without it."
)

Node = tuple[Any, int]
"""Where a tensor comes from: the function that made it, and which of its results it is."""


@dataclass
class Watch:
    """A model's training calls before it is compiled."""

    pending: list[dict[Any, Node]] = field(default_factory=list)
    """Of calls that no backward pass has been through: what they returned."""
    used: set[Any] = field(default_factory=set)
    beside: set[Any] = field(default_factory=set)
    """Returned together with what was differentiated."""
    calls: int = 0

    @property
    def unused(self) -> frozenset[Any]:
        return frozenset(self.beside - self.used)

    def differentiated(self, reached: set[Node]) -> None:
        left = []
        for returned in self.pending:
            used = {key for key, node in returned.items() if node in reached}
            self.used |= used
            if used:
                self.beside |= set(returned)
            else:
                left.append(returned)
        self.pending = left


@dataclass
class UnusedOutputs(Lever):
    name = "unused_outputs"
    summary = "no gradient for what a compiled model returns besides its loss"
    group = Group.GRAPH
    effect = Effect.SAME_MATH
    requires = ("compile",)

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._guard: Any = None
        self._watches: weakref.WeakKeyDictionary[Any, Watch] = weakref.WeakKeyDictionary()
        self._why_not = "no model was compiled"
        self._outputs = self._runs = self._bytes = 0

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        """By the logits of losses that a model computes itself: it may well return both."""
        looked = seen.inspection
        if looked is None or looked.operators is None or not looked.operators.bytes:
            return refuse("it was not looked into, so it is not known who computes the loss")
        inside = [one for one in looked.losses if one.inside_model]
        if not inside:
            return refuse("no model was seen to compute its loss itself")
        spared = sum(PASSES * one.elements * one.itemsize for one in inside)
        share = min(1.0, spared / looked.operators.bytes)
        return Expectation(share * seen.share("forward", "backward"))

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch = torch
        self._guard = _guard(torch)
        seams.compiling.before.append(self._decide)
        seams.model.after.append(self._returned)
        seams.backward.before.append(self._differentiated)
        seams.grad.before.append(self._differentiated)

    def receipt(self) -> Receipt:
        if not self._runs:
            return self.not_applied(self._why_not)
        return self.applied(outputs=self._outputs, bytes=self._bytes, runs=self._runs)

    def _decide(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A model is about to be compiled: not before it is known what is made of its results."""
        module = args[0]
        watch = self._watches.setdefault(module, Watch())
        if not watch.used and watch.calls < PATIENCE:
            self._why_not = "the model was not called often enough"
            watch.calls += 1
            kwargs["later"] = True
            return
        del self._watches[module]
        if not watch.used:
            self._why_not = "no backward pass reached a tuple or a dict that the model returned"
        elif not watch.unused:
            self._why_not = "everything that the model returns is differentiated"
        else:
            self._outputs += len(watch.unused)
            kwargs["around"] = self._around(frozenset(watch.used), watch.unused)

    def _returned(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        watch = self._watches.get(args[0])
        if watch is not None and self._torch.is_grad_enabled():
            parts = _parts(result).items()
            nodes = {key: _node(part) for key, part in parts if _is_differentiable(part)}
            watch.pending.append(nodes)

    def _differentiated(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        watches = list(self._watches.values())
        ends = {node for watch in watches for each in watch.pending for node in each.values()}
        if not ends:
            return
        reached = _reached(self._torch, args[0], ends)
        for watch in watches:
            watch.differentiated(reached)

    def _around(self, used: frozenset[Any], unused: frozenset[Any]) -> Around:
        torch = self._torch
        anchor = torch.zeros((), requires_grad=True)

        def around(call: Any, compiled: Any) -> Any:
            def inside(*args: Any, **kwargs: Any) -> Any:
                result = call(*args, **kwargs)
                return _changed(result, used, unused, lambda part: part.detach())

            run = compiled(inside)

            def outside(*args: Any, **kwargs: Any) -> Any:
                result = run(*args, **kwargs)
                if not torch.is_grad_enabled():
                    return result
                return _changed(result, used, unused, lambda part: self._guarded(part, anchor))

            return outside

        return around

    def _guarded(self, part: Any, anchor: Any) -> Any:
        """As differentiable as it was, to whoever asks; but to differentiate it is an error."""
        if part.requires_grad or not part.is_floating_point():
            return part
        self._runs += 1
        self._bytes = max(self._bytes, part.nbytes)
        return self._guard.apply(anchor, part)


def _guard(torch: Any) -> Any:
    class Guard(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, anchor: Any, part: Any) -> Any:
            return part.view_as(part)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            raise RuntimeError(DIFFERENTIATED)

    return Guard


def _parts(result: Any) -> dict[Any, Any]:
    """What is returned together, by place or by name. Of one tensor by itself, nothing."""
    if type(result) in (tuple, list):
        return dict(enumerate(result))
    return dict(result.items()) if isinstance(result, dict) else {}


def _changed(result: Any, used: frozenset[Any], unused: frozenset[Any], change: Any) -> Any:
    """Only where the script gets what it differentiates as well. Traced by torch's compiler."""
    if isinstance(result, dict):
        if all(hasattr(result.get(key), "detach") for key in used):
            for key in unused:
                if hasattr(result.get(key), "detach"):
                    result[key] = change(result[key])
        return result
    if type(result) not in (tuple, list) or len(result) <= max(used):
        return result
    if not all(hasattr(result[key], "detach") for key in used):
        return result
    made = [
        change(part) if index in unused and hasattr(part, "detach") else part
        for index, part in enumerate(result)
    ]
    return made if type(result) is list else tuple(made)


def _is_differentiable(part: Any) -> bool:
    return getattr(part, "grad_fn", None) is not None


def _node(tensor: Any) -> Node:
    return tensor.grad_fn, tensor.output_nr


def _reached(torch: Any, tensors: Any, ends: set[Node]) -> set[Node]:
    """Which of the ends a backward pass from these tensors comes to, not through another one."""
    given = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    pending = [_node(tensor) for tensor in given if _is_differentiable(tensor)]
    reached: set[Node] = set()
    known = set(pending)
    while pending and len(known) < MOST_NODES:
        node = pending.pop()
        if node in ends:
            reached.add(node)
            continue
        ahead = [each for each in node[0].next_functions if each[0] is not None]
        pending += [each for each in ahead if each not in known]
        known.update(ahead)
    return set(ends) if pending else reached
