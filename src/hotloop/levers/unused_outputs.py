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

from hotloop.levers.base import NOT_LOOKED, Effect, Expectation, Group, Lever, Receipt, Seen, refuse

if TYPE_CHECKING:
    from hotloop.levers.in_place import Around
    from hotloop.seams import Seams

LEAST_CALLS, PATIENCE = 3, 6
"""Training calls that are watched, and at the most while none is differentiated. A discriminator is
called for its own step and again for the generator's, which may use other results."""
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

    calls: int = 0
    pending: list[dict[Any, Node]] = field(default_factory=list)
    """What they returned, until the optimizer steps: it keeps all that a call has computed."""
    used: set[Any] = field(default_factory=set)
    beside: set[Any] = field(default_factory=set)
    """Returned together with what was differentiated."""

    @property
    def is_over(self) -> bool:
        return self.calls >= (LEAST_CALLS if self.used else PATIENCE)

    @property
    def unused(self) -> frozenset[Any]:
        return frozenset(self.beside - self.used)

    def differentiate(self, tensors: list[Any] | None) -> None:
        """`tensors`: None where it is not known which."""
        for returned in self.pending:
            ends = set(returned.values())
            reached = ends if tensors is None else _reached(tensors, ends)
            used = {key for key, node in returned.items() if node in reached}
            self.used |= used
            self.beside |= set(returned) if used else set()


@dataclass
class UnusedOutputs(Lever):
    name = "unused_outputs"
    summary = "no gradient for what a compiled model returns besides its loss"
    group = Group.GRAPH
    effect = Effect.SAME_MATH
    not_for_memory = ""
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
            return refuse(f"who computes the loss is not known: {NOT_LOOKED}")
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
        seams.step.after.append(self._stepped)

    def receipt(self) -> Receipt:
        if not self._runs:
            return self.not_applied(self._why_not)
        return self.applied(outputs=self._outputs, bytes=self._bytes, runs=self._runs)

    def _decide(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A model is about to be compiled: not before it is known what is made of its results."""
        watch = self._watches.setdefault(args[0], Watch())
        if not watch.is_over:
            self._why_not = "the model was not called often enough"
            watch.calls += 1
            kwargs["later"] = True
            return
        del self._watches[args[0]]
        if not watch.used:
            self._why_not = "no backward pass reached a tuple or a dict that the model returned"
        elif not watch.unused:
            self._why_not = "all that the model returns may be differentiated"
        else:
            kwargs["around"] = self._around(frozenset(watch.used), watch.unused)

    def _returned(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        watch = self._watches.get(args[0])
        if watch is not None and self._torch.is_grad_enabled():
            parts = _parts(result).items()
            watch.pending.append({key: _node(one) for key, one in parts if _has_node(one)})

    def _differentiated(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not self._watches:
            return
        given: Any = args[0] if args else kwargs.get("tensors", kwargs.get("outputs"))
        if isinstance(given, self._torch.Tensor):
            given = [given]
        # Who looks into a generator has emptied it.
        known = list(given) if type(given) in (tuple, list) else None
        for watch in self._watches.values():
            watch.differentiate(known)

    def _stepped(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        for watch in self._watches.values():
            watch.pending.clear()

    def _around(self, used: frozenset[Any], unused: frozenset[Any]) -> Around:
        torch = self._torch

        def around(call: Any, compiled: Any) -> Any:
            def inside(*args: Any, **kwargs: Any) -> Any:
                return _cut(call(*args, **kwargs), used, unused)

            run, is_whole = compiled(inside), True

            def outside(*args: Any, **kwargs: Any) -> Any:
                nonlocal run, is_whole
                if torch.compiler.is_compiling():  # by the script, which compiles what calls it
                    return call(*args, **kwargs)
                if not is_whole:
                    return run(*args, **kwargs)
                breaks = self._breaks()
                result, cut = run(*args, **kwargs)
                if self._breaks() > breaks:  # then each piece wants its gradients as before
                    self._why_not = "the model is compiled in pieces"
                    run, is_whole = compiled(call), False
                elif cut:
                    self._count([_part(result, key) for key in cut])
                return self._guarded(result, cut, used)

            return outside

        return around

    def _breaks(self) -> int:
        return sum(self._torch._dynamo.utils.counters["graph_break"].values())

    def _count(self, parts: list[Any]) -> None:
        self._runs += 1
        self._outputs = max(self._outputs, len(parts))
        self._bytes = max(self._bytes, *(part.nbytes for part in parts))

    def _guarded(self, result: Any, cut: tuple[Any, ...], used: frozenset[Any]) -> Any:
        """As differentiable as they were, to whoever asks; but to differentiate them is an error.

        Each hangs on what is differentiated: autograd leaves out what leads to no weight.
        """
        if not cut:
            return result
        held = _part(result, next(iter(used)))
        with self._torch.enable_grad():
            return _with(result, {key: self._guard.apply(held, _part(result, key)) for key in cut})


def _guard(torch: Any) -> Any:
    class Guard(torch.autograd.Function):  # type: ignore[misc]
        generate_vmap_rule = True

        @staticmethod
        def forward(held: Any, part: Any) -> Any:
            return part.view_as(part)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            raise RuntimeError(DIFFERENTIATED)

    return Guard


def _parts(result: Any) -> dict[Any, Any]:
    """What is returned together, by place or by name. Of one tensor by itself, nothing."""
    if type(result) in (tuple, list):
        return dict(enumerate(result))
    return dict(result.items()) if isinstance(result, dict) else {}


# The next four are traced by torch's compiler, and so are written plainly.


def _cut(result: Any, used: frozenset[Any], unused: frozenset[Any]) -> tuple[Any, tuple[Any, ...]]:
    """Without their way back, and which. Only where all is there that the script differentiates."""
    if not all(_is_attached(_part(result, key)) for key in used):
        return result, ()
    cut = tuple(key for key in unused if _is_attached(_part(result, key)))
    return _with(result, {key: _part(result, key).detach() for key in cut}), cut


def _part(result: Any, key: Any) -> Any:
    if isinstance(result, dict):
        return result.get(key)
    is_there = type(result) in (tuple, list) and isinstance(key, int) and key < len(result)
    return result[key] if is_there else None


def _with(result: Any, changed: dict[Any, Any]) -> Any:
    if isinstance(result, dict):
        for key, part in changed.items():
            result[key] = part
        return result
    parts = [changed.get(place, part) for place, part in enumerate(result)]
    return parts if type(result) is list else tuple(parts)


def _is_attached(part: Any) -> bool:
    return getattr(part, "requires_grad", False)


def _has_node(part: Any) -> bool:
    return getattr(part, "grad_fn", None) is not None


def _node(tensor: Any) -> Node:
    return tensor.grad_fn, tensor.output_nr


def _reached(tensors: list[Any], ends: set[Node]) -> set[Node]:
    """Which of the ends a backward pass from these tensors comes to, not through another one.

    All of them, where it is too far to see.
    """
    pending = [_node(tensor) for tensor in tensors if _has_node(tensor)]
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
    return ends if pending else reached
