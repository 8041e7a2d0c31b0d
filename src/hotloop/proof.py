"""Is the plan faster than the job as it is, and does each of its optimisations help?

Rounds of fresh processes, one after the other: the job as it is, the plan, and the plan with each
optimisation left out once. What ran in one round is compared in pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.compare import Comparison
from hotloop.plan import Plan


@dataclass(frozen=True)
class Contribution:
    """The plan against the plan without this optimisation."""

    lever: str
    comparison: Comparison


@dataclass(frozen=True)
class Proof:
    plan: Plan
    """What is left of it, once passengers are removed."""
    comparison: Comparison
    """The job as it is against that plan."""
    contributions: tuple[Contribution, ...]
    removed: tuple[Contribution, ...]
    """Passengers: leaving them out costs nothing that could be shown."""
    floor: float
    """The gain that this machine may show when a plan is compared with itself."""
