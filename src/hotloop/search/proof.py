"""Is the plan faster than the job as it is, and does each of its optimisations help?

First the plan as a whole, so that it is proven as early as can be. Then each optimisation is left
out once, and the passengers leave; what remains is proven again, on fresh pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hotloop.plan import Plan
from hotloop.search import compare, duel, parts
from hotloop.search.climb import Bench, BudgetSpent
from hotloop.search.compare import Comparison
from hotloop.search.interactions import names, without
from hotloop.search.parts import Contribution


@dataclass(frozen=True)
class Proof:
    plan: Plan
    """What is left of it, once passengers are removed."""
    comparison: Comparison
    """The job as it is, or what it needs to run, against that plan."""
    contributions: tuple[Contribution, ...]
    """Of the optimisations in it, as far as there was time. None when the plan is not faster."""
    removed: tuple[Contribution, ...]
    """Passengers: leaving them out costs nothing that could be shown. The least useful first."""
    floor: float
    """The gain that this machine may show when a plan is compared with itself."""


def prove(
    plan: Plan,
    bench: Bench,
    start: Plan | None = None,
    passengers_leave: Callable[[], None] = lambda: None,
) -> Proof:
    """Raises BudgetSpent when there is no time for a verdict; once there is one, it stands.

    `start`: what it is compared with, where the job needs something to run at all.
    `passengers_leave`: told when they are about to, so that time is kept for what that leads to.
    """
    start = start or Plan()
    fought = duel.fought(start, plan, bench)
    proof = Proof(plan, fought.comparison, (), (), fought.floor)
    if not proof.comparison.faster:
        return proof
    if len(plan.levers) == 1:
        return _of_one(proof)
    found = parts.measured(plan, names(plan), bench, proof.comparison.pairs)
    if found.failed:
        failure = found.failed.rstrip(".")
        pairs, reason = proof.comparison.pairs, f"the plan failed in the proof: {failure}"
        return replace(proof, comparison=compare.failed(pairs, reason))
    whole = replace(proof, contributions=_in_order(found.contributions, plan))
    try:
        passengers_leave()
        return _without(found.passengers, whole, bench, start)
    except BudgetSpent:
        return whole


def _without(passengers: Sequence[str], whole: Proof, bench: Bench, start: Plan) -> Proof:
    """All at once; and if that was too much, the least useful one.

    Of two that do the same work either may be left out, but not both: so the plan that still has
    them runs beside the one that has not.
    """
    for leaving in dict.fromkeys((tuple(passengers), tuple(passengers[:1]))):
        plan = whole.plan
        for lever in leaving:
            plan = without(plan, lever)
        if plan in (whole.plan, Plan(), start):
            continue
        fought = duel.fought(start, plan, bench, whole.plan if len(leaving) > 1 else None)
        is_too_much = fought.rival is not None and fought.rival.faster
        if fought.comparison.faster and not is_too_much:
            return _shortened(whole, plan, fought)
    return whole  # what was proven stays


def _shortened(whole: Proof, plan: Plan, fought: duel.Duel) -> Proof:
    left = names(plan)
    gone = [one for one in whole.contributions if one.lever not in left]
    proof = Proof(
        plan,
        fought.comparison,
        tuple(one for one in whole.contributions if one.lever in left),
        tuple(sorted(gone, key=lambda one: one.comparison.ratio)),
        fought.floor,
    )
    return _of_one(proof) if len(left) == 1 else proof


def _of_one(proof: Proof) -> Proof:
    """It contributes what the plan does."""
    only = Contribution(proof.plan.levers[0].lever, proof.comparison)
    return replace(proof, contributions=(only,))


def _in_order(found: Sequence[Contribution], plan: Plan) -> tuple[Contribution, ...]:
    place = names(plan).index
    return tuple(sorted(found, key=lambda one: place(one.lever)))
