"""Calls that have no place in a training loop, or dear ones; passes that keep what none needs."""

from __future__ import annotations

import sys
import threading
from time import perf_counter_ns
from typing import Any

from hotloop.inspection import Call, Pass
from hotloop.runtime.look.frames import Frames
from hotloop.runtime.patches import Patches
from hotloop.seams import Seams

MOST = 2_000
MOST_BUILT = 20


class CallProbe:
    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._frames = Frames()
        self._thread = threading.get_ident()
        self.calls: list[Call] = []
        self._passes: dict[int, Pass] = {}
        """By the order of their ends: those that no gradient has reached."""
        self._ended = 0
        self._differentiated_at = 0
        self.skips: int | None = None
        self._stepped = False

    @property
    def passes(self) -> list[Pass]:
        return list(self._passes.values())

    def attach(self, seams: Seams, patches: Patches) -> None:
        torch = self._torch
        seams.model.after.append(self._called)
        seams.optimizer.after.append(self._built)
        for way in (seams.backward, seams.grad):
            way.after.append(self._differentiated)
        seams.step.before.append(self._step)
        seams.scaler_step.before.append(self._scale)
        seams.scaler_step.after.append(self._scaled)
        self._watch(patches, torch, "save", "torch.save")
        self._watch(patches, torch.cuda, "empty_cache", "empty_cache")
        self._watch(patches, torch, "set_num_threads", "torch.set_num_threads")
        self._watch(patches, torch, "set_anomaly_enabled", "set_anomaly_enabled")
        self._watch(patches, torch.nn.Module, "double", "Module.double")

    def _watch(self, patches: Patches, owner: Any, name: str, what: str) -> None:
        original = getattr(owner, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            began = perf_counter_ns()
            try:
                return original(*args, **kwargs)
            finally:
                seconds = (perf_counter_ns() - began) / 1e9
                if len(self.calls) < MOST and threading.get_ident() == self._thread:
                    self.calls.append(Call(what, self._stack(), began, seconds))

        patches.replace(owner, name, call)

    def _called(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        """Gradients are on, and the result could be differentiated.

        It may well be: a frozen model in a loss hands gradients on. So the result is watched; and
        in training mode, too, for many a script evaluates in it. And what it was given: losses may
        be taken from layers inside, by hooks or modules that keep them, and the result be unused.
        """
        if not self._torch.is_grad_enabled() or len(self._passes) >= MOST:
            return
        made_by = _nodes(self._torch, result)
        if not made_by or self._differentiated_at > began:  # it does so itself: forces, say
            return
        made_by += _nodes(self._torch, args[1:])
        seconds = (perf_counter_ns() - began) / 1e9
        number, passes = self._ended, self._passes
        self._ended += 1
        passes[number] = Pass(self._stack(), began, seconds, bool(args[0].training))

        def differentiated(gradients: Any) -> None:
            passes.pop(number, None)

        # At the node, not at the tensor: one that has hooks is saved and copied with a warning.
        for node in made_by:
            node.register_prehook(differentiated)

    def _differentiated(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        self._differentiated_at = perf_counter_ns()

    def _stack(self) -> list[Any]:
        numbers = self._frames.stack(sys._getframe(2))
        return [self._frames.known[number] for number in numbers]

    def _built(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        if len(self.calls) < MOST_BUILT:  # some scripts build one for each item
            self.calls.append(Call("an optimizer", self._stack(), began, 0.0))

    def _scale(self, args: Any, kwargs: Any) -> None:
        self._stepped = False
        if args[0].is_enabled():
            self.skips = self.skips or 0

    def _step(self, args: Any, kwargs: Any) -> None:
        self._stepped = True

    def _scaled(self, args: Any, result: Any, began: int) -> None:
        if not self._stepped:
            self.skips = (self.skips or 0) + 1


def _nodes(torch: Any, result: Any) -> list[Any]:
    """Where gradients pass, of every tensor in it."""
    if isinstance(result, torch.Tensor):
        needs = result.requires_grad
        return [torch.autograd.graph.get_gradient_edge(result).node] if needs else []
    parts = result.values() if isinstance(result, dict) else result
    if not isinstance(result, dict | list | tuple):
        return []
    return [node for part in parts for node in _nodes(torch, part)]
