"""What a child is told before it starts: `spec.json`, plain values that it reads with `json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class StopRule:
    """When a trial has seen enough."""

    warm_up: int = 10
    """Steps granted to warming up before the measured ones are counted."""
    steps: int | None = None
    """Exactly this many measured steps. None: as many as the times below ask for."""
    min_steps: int = 40
    min_seconds: float = 8.0
    max_seconds: float = 45.0
    """After this long a slow job has been measured well enough, given `few_steps`."""
    few_steps: int = 5

    def satisfied(self, steps: int, seconds: float) -> bool:
        """`steps` and `seconds` are counted from the end of the first step."""
        if self.steps is not None:
            return steps >= self.warm_up + self.steps
        if seconds >= self.max_seconds:
            return steps >= self.few_steps
        return steps >= self.warm_up + self.min_steps and seconds >= self.min_seconds


@dataclass(frozen=True)
class RunSpec:
    """A training for real, under a plan: nothing is measured and nothing is shielded."""

    levers: tuple[dict[str, Any], ...]
    """{"lever": name, "setting": {…}}, in the order they are applied."""
    keep_going: bool
    """Train on without an optimisation that does not take effect."""


@dataclass(frozen=True)
class TrialSpec:
    result: str
    """Where the child leaves its measurement."""
    progress: str
    """A few bytes, overwritten a few times a second."""
    stack: str
    """Where a script that hangs was, written shortly before its time is over."""
    stop: StopRule
    stack_after: float
    """Seconds after which `stack` is written."""
    limit_seconds: float
    """A job that is slow rather than stuck leaves what it has seen before this is over."""
    scratch: str
    levers: tuple[dict[str, Any], ...] = ()
    passthrough: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()
