"""What to try next. Decides by measured trials alone, so that a search can be replayed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from hotloop.plan import Plan


@dataclass(frozen=True)
class Candidate:
    lever: str
    settings: tuple[dict[str, Any], ...]
    """The most promising first."""
    share: float
    """Of a step's time: what it could win at the most, by what was measured."""


@dataclass(frozen=True)
class Score:
    """What a plan came to, in one process. Smaller is better: seconds a step, or bytes."""

    value: float | None
    reason: str = ""
    """Why there is no value."""


class BudgetSpent(Exception):
    """The time the user granted is over. What was found until then stands."""


class Bench(Protocol):
    """Where plans are measured, one fresh process each."""

    @property
    def spent(self) -> float:
        """Seconds that trials have taken so far."""

    def measure(self, plan: Plan, purpose: str, give_up_above: float | None = None) -> Score:
        """One trial. One that is clearly slower than `give_up_above` may end early.

        Raises BudgetSpent instead when there is no time for it.
        """


@dataclass(frozen=True)
class Tried:
    """A step of the climb: one plan, against the best until then."""

    plan: Plan
    lever: str
    """What was added; several are joined by "+"."""
    score: Score
    best: float
    """The score to beat."""
    kept: bool
    reason: str
    """Why not; empty when kept."""


@dataclass(frozen=True)
class Climb:
    plan: Plan
    tried: tuple[Tried, ...]
    untried: tuple[str, ...] = ()
    """Left out for want of time."""
