"""What is asked of a trial, what is seen of it while it runs, and who can run it.

Behind this lie processes; the tests and replayed searches have other launchers.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hotloop.job import ScriptJob
from hotloop.plan import Plan
from hotloop.trial.spec import Deep, Exam, Look, Soak, StopRule
from hotloop.trial.trial import Trial


@dataclass(frozen=True)
class Order:
    """One trial to run."""

    number: int
    job: ScriptJob
    plan: Plan
    stop: StopRule
    limit_seconds: float
    folder: Path
    """The trial's own, inside the study."""
    purpose: str = ""
    exam: Exam | None = None
    soak: Soak | None = None
    look: Look | None = None
    deep: Deep | None = None
    divisor: int = 1
    """Batches so many times smaller than the script's own."""
    caches: str = "cache"
    """Where compiled code is kept, in the study."""
    beside_others: bool = False
    """Other trials run at the same time."""
    in_part: bool = True
    """A few steps are better than none, if its time is over before it has seen enough."""


@dataclass(frozen=True)
class Glimpse:
    """How a running trial stands."""

    seconds: float
    steps: int
    host_bytes: int | None
    printed: bytes


class Watcher(Protocol):
    def __call__(self, glimpse: Glimpse) -> None: ...


class Launcher(Protocol):
    def launch(self, order: Order, watcher: Watcher) -> Trial: ...
