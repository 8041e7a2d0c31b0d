"""Gradients of parameters that no optimizer holds: a backbone that was meant to be frozen.

A backward pass goes from the loss to the input. What comes after the last gradient that some
optimizer uses would not be there, if those parameters were told not to learn.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from time import perf_counter_ns
from typing import Any

from hotloop.seams import Seams
from hotloop.unused import UnusedGradients


class UnusedGradientProbe:
    def __init__(self) -> None:
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._unused: list[tuple[Any, float]] = []
        """Those parameters, each with what it adds up to."""
        self._hooks: list[Any] = []
        self._last_ns = self._after_ns = self._whole_ns = 0

    def attach(self, seams: Seams) -> None:
        seams.optimizer.after.append(lambda args, result, began: self._optimizers.add(args[0]))
        seams.step.after.append(lambda args, result, began: self._optimizers.add(args[0]))
        seams.backward.after.append(lambda args, result, began: self._differentiated(began))

    def begin(self, models: Iterable[Any]) -> None:
        """Between two steps, with the gradients of the last. A job that has none is not touched."""
        held = {id(one) for each in self._optimizers for one in _held(each)}
        for model in models:
            learning = {id(one): one for one in model.parameters() if one.requires_grad}
            used = [one for number, one in learning.items() if number in held and one.is_leaf]
            unused = [
                one
                for number, one in learning.items()
                if number not in held and one.is_leaf and one.grad is not None
            ]
            if used and unused:  # else it is trained in a way that we do not see
                self._unused += [(one, _sum(one)) for one in unused]
                self._hooks += [
                    one.register_post_accumulate_grad_hook(self._accumulated) for one in used
                ]

    def end(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    @property
    def found(self) -> UnusedGradients | None:
        """None also where they change after all: weights are copied, or updated by hand."""
        if not self._unused or not self._whole_ns:
            return None
        if any(_sum(one) != before for one, before in self._unused):
            return None
        elements = sum(one.numel() for one, _ in self._unused)
        return UnusedGradients(len(self._unused), elements, self._after_ns / self._whole_ns)

    def _accumulated(self, parameter: Any) -> None:
        self._last_ns = perf_counter_ns()

    def _differentiated(self, began: int) -> None:
        if self._hooks and self._last_ns > began:
            now = perf_counter_ns()
            self._after_ns += now - self._last_ns
            self._whole_ns += now - began


def _held(optimizer: Any) -> list[Any]:
    return [one for group in optimizer.param_groups for one in group["params"]]


def _sum(parameter: Any) -> float:
    return float(parameter.detach().double().sum())
