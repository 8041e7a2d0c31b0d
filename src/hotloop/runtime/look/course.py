"""What memory holds over one step, by kind, looked at after every operator.

Tensors are followed by weak references to where they lie: one that is made in the forward pass, by
something that learns, is an activation for as long as anybody keeps it. What becomes a parameter's
gradient is told by a hook. On a GPU the allocator's own count is read beside them, which waits for
nothing; on a CPU nobody counts, and what was made before the step is not known.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterable
from typing import Any

from hotloop.inspection import StepMemory
from hotloop.runtime.probes.holdings import state_tensors

WEIGHTS, GRADIENTS, OPTIMIZER, ACTIVATIONS, REST = range(5)
MOST_POINTS = 240
"""Kept of a step: the highest of each stretch of operators."""


class MemoryCourse:
    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._on = False
        self._device: Any = None
        self._held = [0, 0, 0, 0, 0]
        self._kinds: dict[int, int] = {}
        """Of the memory that is followed, by where it lies."""
        self._references: dict[int, Any] = {}
        self._hooks: list[Any] = []
        self._points: list[tuple[str, int, list[int], int]] = []
        self._count = 0

    def begin(self, models: Iterable[Any], optimizers: Iterable[Any]) -> None:
        """Between two steps: whatever models and optimizers hold is there already."""
        learning = [model for model in models if any(True for _ in model.parameters())]
        if not learning:
            return
        parameters = [one for model in learning for one in model.parameters()]
        self._device = parameters[0].device
        for model in learning:
            for tensor in (*model.parameters(), *model.buffers()):
                self._follow(tensor, WEIGHTS)
        for parameter in parameters:
            if parameter.grad is not None:
                self._follow(parameter.grad, GRADIENTS)
            if parameter.requires_grad and parameter.is_leaf:
                self._hooks.append(parameter.register_post_accumulate_grad_hook(self._see_gradient))
        for optimizer in optimizers:
            for tensor in state_tensors(self._torch, optimizer):
                self._follow(tensor, OPTIMIZER)
        self._on = True
        self._look("forward")

    def see(self, results: list[Any], phase: str, learns: bool) -> None:
        """An operator has run. `learns`: in a forward pass that is going to be differentiated."""
        if not self._on:
            return
        self._count += 1
        for tensor in results:
            self._follow(tensor, ACTIVATIONS if learns else REST)
        self._look(phase)

    def end(self) -> StepMemory | None:
        """After the step. None where there was nothing to follow."""
        if not self._on:
            return None
        self._on = False
        for hook in self._hooks:
            hook.remove()
        self._references.clear()  # and nobody is told any more of what goes
        kept = _highest(self._points)
        columns = [[held[kind] for _, _, held, _ in kept] for kind in range(4)]
        return StepMemory(
            device=str(self._device),
            operators=self._count,
            phase=[phase for phase, _, _, _ in kept],
            operator=[number for _, number, _, _ in kept],
            weights=columns[WEIGHTS],
            gradients=columns[GRADIENTS],
            optimizer=columns[OPTIMIZER],
            activations=columns[ACTIVATIONS],
            total=[total for _, _, _, total in kept],
        )

    def _look(self, phase: str) -> None:
        self._points.append((phase, self._count, list(self._held), self._total()))

    def _total(self) -> int:
        if self._device.type == "cuda":
            return int(self._torch.cuda.memory_allocated(self._device))
        return sum(self._held)

    def _follow(self, tensor: Any, kind: int) -> None:
        with contextlib.suppress(Exception):  # sparse, or somebody's own kind of tensor
            storage = tensor.untyped_storage()
            place, size = storage._cdata, storage.nbytes()
            if place in self._kinds or not size or storage.device != self._device:
                return  # a view, or a result that lies where an operand did
            self._kinds[place] = kind
            self._held[kind] += size
            self._references[place] = weakref.ref(storage, self._gone(place, size))

    def _gone(self, place: int, size: int) -> Any:
        def forget(reference: Any) -> None:
            self._held[self._kinds.pop(place)] -= size
            self._references.pop(place, None)

        return forget

    def _see_gradient(self, parameter: Any) -> None:
        """It lies where some operator of the backward pass has left it, and was the rest so far."""
        with contextlib.suppress(Exception):
            storage = parameter.grad.untyped_storage()
            place = storage._cdata
            if place not in self._kinds:
                self._follow(parameter.grad, GRADIENTS)
            elif self._kinds[place] != GRADIENTS:
                self._held[self._kinds[place]] -= storage.nbytes()
                self._held[GRADIENTS] += storage.nbytes()
                self._kinds[place] = GRADIENTS


def _highest(points: list[tuple[str, int, list[int], int]]) -> list[Any]:
    """The highest of each stretch, and the first and the last of all."""
    width = -(-len(points) // MOST_POINTS)
    stretches = [points[at : at + width] for at in range(0, len(points), max(width, 1))]
    kept = [max(stretch, key=lambda point: point[3]) for stretch in stretches]
    edges = [edge for edge in (points[0], points[-1]) if edge not in kept]
    return sorted([*kept, *edges], key=lambda point: point[1])
