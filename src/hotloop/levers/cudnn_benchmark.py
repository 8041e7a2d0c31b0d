"""cuDNN tries its algorithms for each convolution it has not met before, and keeps the fastest.

Without it, a rule of thumb chooses. A script that wants the same bits every time is left alone:
which algorithm is the fastest may differ from run to run.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import Effect, Expectation, Group, Lever, Receipt, Seen, refuse

if TYPE_CHECKING:
    from hotloop.seams import Seams

MOST = 4
"""Algorithms that are tried for each, those first that the rule of thumb prefers. torch would try
ten, of which the last can take seconds each for volumes."""
GAIN = 0.15
"""Of the model's own passes, where they are convolutions. Only a trial can tell."""


@dataclass
class CudnnBenchmark(Lever):
    name = "cudnn_benchmark"
    summary = "cuDNN tries its algorithms for each convolution, keeps the fastest"
    group = Group.GRAPH
    effect = Effect.SAME_MATH
    not_for_memory = "it tries algorithms for their speed, whatever memory they take"

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._met: weakref.WeakSet[Any] = weakref.WeakSet()
        self._reason = ""
        self._convolutions = self._steps = 0

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        precision = seen.measurement.inventory.precision
        if not seen.on_gpu:
            return refuse("cuDNN computes on NVIDIA's GPUs alone")
        if precision.deterministic:
            return refuse("the script asks for deterministic algorithms")
        if precision.cudnn_benchmark:
            return refuse("the script has already turned it on")
        if not any(model.convolves for model in seen.measurement.inventory.models):
            return refuse("no model was seen to have convolutions")
        return Expectation(seen.share("forward", "backward") * GAIN)

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch = torch
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.benchmark_limit = MOST
        # The first is before anything is computed, as a rule; the others see what comes later.
        seams.optimizer.before.append(self._make_way)
        seams.model.before.append(self._meet)
        seams.step.after.append(self._look)

    def receipt(self) -> Receipt:
        if not self._torch.cuda.is_initialized():
            return self.not_applied("the job does not use a GPU")
        if not self._steps:
            return self.not_applied("no optimizer stepped")
        if self._reason:
            return self.not_applied(self._reason)
        if not self._convolutions:
            return self.not_applied("no convolution of the model is on the GPU")
        return self.applied(convolutions=self._convolutions, steps=self._steps)

    def _make_way(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        torch = self._torch
        if torch.backends.cudnn.deterministic or torch.are_deterministic_algorithms_enabled():
            torch.backends.cudnn.benchmark = False
            self._reason = "the script asks for deterministic algorithms"

    def _meet(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        module = args[0]
        if module in self._met:
            return
        self._met.add(module)
        kind = self._torch.nn.modules.conv._ConvNd
        parts = (part for part in module.modules() if isinstance(part, kind))
        self._convolutions += sum(getattr(part.weight, "is_cuda", False) for part in parts)

    def _look(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        self._steps += 1
        self._make_way(args, {})
        if not self._reason and not self._torch.backends.cudnn.benchmark:
            self._reason = "the script turned it off again"
