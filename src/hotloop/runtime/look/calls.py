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


class CallProbe:
    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._frames = Frames()
        self._thread = threading.get_ident()
        self.calls: list[Call] = []
        self.passes: list[Pass] = []
        self.skips: int | None = None
        self._stepped = False

    def attach(self, seams: Seams, patches: Patches) -> None:
        torch = self._torch
        seams.model.after.append(self._called)
        seams.step.before.append(self._step)
        seams.scaler_step.before.append(self._scale)
        seams.scaler_step.after.append(self._scaled)
        self._watch(patches, torch, "save", "torch.save")
        self._watch(patches, torch.cuda, "empty_cache", "empty_cache")
        self._watch(patches, torch, "set_num_threads", "torch.set_num_threads")

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
        """A model in evaluation mode, gradients on, and a result that could be differentiated."""
        if args[0].training or not self._torch.is_grad_enabled() or len(self.passes) >= MOST:
            return
        if _differentiable(self._torch, result):
            seconds = (perf_counter_ns() - began) / 1e9
            self.passes.append(Pass(self._stack(), began, seconds))

    def _stack(self) -> list[Any]:
        numbers = self._frames.stack(sys._getframe(2))
        return [self._frames.known[number] for number in numbers]

    def _scale(self, args: Any, kwargs: Any) -> None:
        self._stepped = False
        self.skips = self.skips or 0

    def _step(self, args: Any, kwargs: Any) -> None:
        self._stepped = True

    def _scaled(self, args: Any, result: Any, began: int) -> None:
        if not self._stepped:
            self.skips = (self.skips or 0) + 1


def _differentiable(torch: Any, result: Any) -> bool:
    parts = result.values() if isinstance(result, dict) else result
    if isinstance(result, torch.Tensor):
        return bool(result.requires_grad)
    if not isinstance(result, dict | list | tuple):
        return False
    return any(isinstance(part, torch.Tensor) and part.requires_grad for part in parts)
