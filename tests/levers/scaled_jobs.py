"""Loops whose gradients are scaled, by a lever or by hand. Torch is handed in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hotloop.levers.fp16 import Fp16
from hotloop.seams import Seams

STEPS = 8
SMALL = 0.01
"""Of a loss that does not overflow when it is scaled: no step is skipped, so gradients compare."""


@contextmanager
def under(torch: Any, lever: Fp16) -> Iterator[Seams]:
    """From the model's very first call on."""
    from hotloop.runtime.script import ScriptDriver

    seams = Seams()
    seams.model.at_once = True
    lever.apply(torch, seams)
    driver = ScriptDriver(torch, seams)
    driver.attach()
    try:
        yield seams
    finally:
        driver.detach()
        assert not torch.is_autocast_enabled("cpu")


@dataclass(frozen=True)
class Case:
    kind: str = "SGD"
    fused: bool = False
    clip: str = ""
    passes: int = 1
    size: float = 1.0
    """Of the loss: a large one overflows until the scale is small enough."""
    optimizers: int = 1
    device: str = "cpu"


class Trained:
    """An ordinary loop, from the seed to the weights; with a scaler by hand, or without."""

    def __init__(self, torch: Any, jobs: Any, case: Case, scaler: Any = None) -> None:
        self.logged: list[float] = []
        self._torch, self._case, self._scaler = torch, case, scaler
        torch.manual_seed(3)
        self.model = jobs.Net(16).to(case.device)
        parts = [self.model.body, self.model.head] if case.optimizers == 2 else [self.model]
        self.optimizers = [self._optimizer(part) for part in parts]
        for _ in range(STEPS):
            self._step(
                [[each.to(case.device) for each in jobs.batch()] for _ in range(case.passes)]
            )
        self.weights = [p.detach().clone() for p in self.model.parameters()]

    def _optimizer(self, part: Any) -> Any:
        options: dict[str, Any] = {"momentum": 0.9} if self._case.kind == "SGD" else {}
        if self._case.fused:
            options["fused"] = True
        kind = getattr(self._torch.optim, self._case.kind)
        return kind(part.parameters(), lr=0.01, **options)

    def _step(self, batches: list[Any]) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        for x, y in batches:
            self._differentiate(x, y)
        if self._scaler is not None:
            for optimizer in self.optimizers:
                self._scaler.unscale_(optimizer)
        self.logged += [float(p.grad.norm()) for p in self.model.parameters()]
        weights = list(self.model.parameters())
        if self._case.clip == "norm":
            self.logged.append(float(self._torch.nn.utils.clip_grad_norm_(weights, 0.05)))
        elif self._case.clip == "value":
            self._torch.nn.utils.clip_grad_value_(weights, 0.01)
        for optimizer in self.optimizers:
            optimizer.step() if self._scaler is None else self._scaler.step(optimizer)
        if self._scaler is not None:
            self._scaler.update()

    def _differentiate(self, x: Any, y: Any) -> None:
        if self._scaler is None:
            self._loss(x, y).backward()
        else:
            with self._torch.autocast(self._case.device, dtype=self._torch.float16):
                loss = self._loss(x, y)
            self._scaler.scale(loss).backward()

    def _loss(self, x: Any, y: Any) -> Any:
        error = self._torch.nn.functional.mse_loss(self.model(x), y)
        return self._case.size * error / self._case.passes
