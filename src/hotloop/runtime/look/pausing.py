"""Whether an evaluation lay in a step, told as it goes: passes that most steps do not have."""

from __future__ import annotations

import statistics
from typing import Any

from hotloop.seams import Seams


class PauseProbe:
    def __init__(self, torch: Any) -> None:
        self._grad_enabled = torch.is_grad_enabled
        self._without = self._with = self._backward = 0
        """Passes since the last step: without gradients, with them, and back."""
        self._steps: list[tuple[int, int, int]] = []

    def attach(self, seams: Seams) -> None:
        seams.model.after.append(self._called)
        seams.backward.after.append(self._differentiated)
        seams.grad.after.append(self._differentiated)

    def stepped(self) -> bool:
        """Whether the step that has ended had one."""
        now = self._without, self._with, self._backward
        self._without = self._with = self._backward = 0
        before, self._steps = self._steps, [*self._steps, now]
        if not before:
            return False
        usual = [statistics.median_low(kind) for kind in zip(*before, strict=True)]
        more = [count > often for count, often in zip(now, usual, strict=True)]
        return more[0] or (more[1] and not more[2])

    def _called(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        if self._grad_enabled():
            self._with += 1
        else:
            self._without += 1

    def _differentiated(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        self._backward += 1
