"""Is the plan faster than the job as it is, and does each of its optimisations help?

Rounds of fresh processes, one after the other: the job as it is, the plan, and the plan with each
optimisation left out once. What ran in one round is compared in pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hotloop.plan import Plan
from hotloop.search import compare, rounds
from hotloop.search.climb import Bench
from hotloop.search.compare import Comparison
from hotloop.search.interactions import names, without


@dataclass(frozen=True)
class Contribution:
    """The plan against the plan without this optimisation."""

    lever: str
    comparison: Comparison
    needed: bool = False
    """Without it the job failed, as the comparison's reason says: it is no passenger."""


@dataclass(frozen=True)
class Proof:
    plan: Plan
    """What is left of it, once passengers are removed."""
    comparison: Comparison
    """The job as it is, or what it needs to run, against that plan."""
    contributions: tuple[Contribution, ...]
    """Of each optimisation in it. None when the plan is not faster."""
    removed: tuple[Contribution, ...]
    """Passengers: leaving them out costs nothing that could be shown."""
    floor: float
    """The gain that this machine may show when a plan is compared with itself."""


def prove(plan: Plan, bench: Bench, start: Plan | None = None) -> Proof:
    """Raises BudgetSpent when there is no time for a verdict.

    `start`: what it is compared with, where the job needs something to run at all.
    """
    start = start or Plan()
    proof = _proof(plan, names(plan), bench, start)
    while shorter := _with_one_less(proof, bench, start):
        proof = shorter
    return proof


def _with_one_less(proof: Proof, bench: Bench, start: Plan) -> Proof | None:
    """Without the least useful passenger, on fresh pairs. None: nothing is to be removed.

    One at a time: of two that do the same work, either may be left out, but not both. So the other
    passengers are measured again without this one.
    """
    passengers = [one for one in proof.contributions if _is_passenger(one)]
    if not passengers:
        return None
    least = min(passengers, key=lambda one: one.comparison.ratio)
    plan = without(proof.plan, least.lever)
    if plan in (Plan(), start):
        return None
    left = names(plan)
    again = _proof(plan, tuple(one.lever for one in passengers if one.lever in left), bench, start)
    if not again.comparison.faster:
        return None  # what was proven stays
    renewed = {one.lever: one for one in (*proof.contributions, *again.contributions)}
    gone = tuple(one for one in proof.contributions if one.lever not in left)
    return replace(
        again,
        contributions=tuple(renewed[lever] for lever in left),
        removed=(*proof.removed, *gone),
    )


def _proof(plan: Plan, left_out: tuple[str, ...], bench: Bench, start: Plan) -> Proof:
    alone = len(plan.levers) == 1
    found = rounds.measured(plan, () if alone else left_out, bench, start)
    if not found.comparison.faster:
        return Proof(plan, found.comparison, (), (), found.floor)
    parts = found.parts if not alone else dict.fromkeys(names(plan), found.comparison)
    contributions = [Contribution(lever, part) for lever, part in parts.items()]
    for lever, reason in found.needed.items():
        failed = compare.failed((), f"without it the job failed: {reason}")
        contributions.append(Contribution(lever, failed, needed=True))
    return Proof(plan, found.comparison, tuple(contributions), (), found.floor)


def _is_passenger(contribution: Contribution) -> bool:
    return not contribution.comparison.faster and not contribution.needed
