"""What does each optimisation of a plan add? The plan against the plan without it.

That the plan is faster is proven before, and stays so whatever is decided here. So less certainty
is asked for than of a gain, and all parts are judged by one spread, that of the proof included:
processes of one job on one machine differ alike, and five pairs by themselves know little of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotloop.plan import Plan
from hotloop.search import compare
from hotloop.search.climb import Bench, BudgetSpent
from hotloop.search.compare import CERTAIN, LIKELY, SURE, Comparison, Pair
from hotloop.search.interactions import without
from hotloop.search.rounds import Rounds

EARLY_LOOKS = {1: CERTAIN, 2: SURE, 3: SURE}
"""Rounds after which what is sure need not be run again, and the risk of a wrong word then: a
single process may be slower than any that were seen before."""
LAST_LOOK = 5

_PLAN = "the plan"


@dataclass(frozen=True)
class Contribution:
    """The plan against the plan without this optimisation."""

    lever: str
    comparison: Comparison
    needed: bool = False
    """Without it the job failed, as the comparison's reason says: it is no passenger."""


@dataclass(frozen=True)
class Parts:
    contributions: tuple[Contribution, ...]
    """Of those whose spread is known: by the proof, or because they were measured twice."""
    passengers: tuple[str, ...]
    """Which add nothing that could be shown, the least useful first."""
    failed: str = ""
    """Why the plan itself came to nothing, if it did."""


def measured(plan: Plan, levers: Sequence[str], bench: Bench, proof: Sequence[Pair] = ()) -> Parts:
    """When the time is over, whatever is not decided stays in the plan. `proof`: of the plan."""
    questions = _Questions(plan, levers, bench, proof)
    try:
        while questions.are_open:
            questions.run_a_round()
    except BudgetSpent:
        questions.give_up()
    return questions.answers()


class _Questions:
    def __init__(
        self, plan: Plan, levers: Sequence[str], bench: Bench, proof: Sequence[Pair]
    ) -> None:
        plans = {_PLAN: plan} | {lever: without(plan, lever) for lever in levers}
        self._rounds = Rounds(plans, bench, vital=(_PLAN,))
        self._levers = levers
        self._proof = proof
        self._open = list(levers)
        self._undecided: list[str] = []
        """When the time was over."""

    @property
    def are_open(self) -> bool:
        return bool(self._open) and _PLAN not in self._rounds.failed

    def run_a_round(self) -> None:
        self._rounds.run_one([_PLAN, *self._open])
        self._open = [lever for lever in self._open if lever not in self._rounds.failed]
        if risk := EARLY_LOOKS.get(self._rounds.count):
            self._open = [lever for lever in self._open if not self._is_sure(lever, risk)]
        elif self._rounds.count == LAST_LOOK:
            self._open = []

    def give_up(self) -> None:
        self._undecided, self._open = self._open, []

    def answers(self) -> Parts:
        failed = self._rounds.failed
        compared = [lever for lever in self._levers if self._is_known(lever)]
        found = [Contribution(one, self._compared(one)) for one in compared if one not in failed]
        idle = [one for one in found if not one.comparison.faster]
        idle = [one for one in idle if one.lever not in self._undecided]
        needed = [
            Contribution(lever, compare.failed((), f"without it the job failed: {reason}"), True)
            for lever, reason in failed.items()
            if lever != _PLAN
        ]
        last = sorted(idle, key=lambda one: one.comparison.ratio)
        return Parts((*found, *needed), tuple(one.lever for one in last), failed.get(_PLAN, ""))

    def _is_known(self, lever: str) -> bool:
        """Whether there is anything to say of it, if only within a wide interval."""
        return len(self._pairs(lever)) >= (1 if len(self._proof) > 1 else 2)

    def _is_sure(self, lever: str, risk: float) -> bool:
        """Either way; but one slow process of the plan would make passengers of them all."""
        if not self._is_known(lever):
            return False
        found = self._compared(lever, risk)
        is_passenger = len(found.pairs) > 1 and found.high < compare.worth_adding(to_others=True)
        return found.faster or is_passenger

    def _compared(self, lever: str, risk: float = LIKELY) -> Comparison:
        alike = [self._proof, *map(self._pairs, self._levers)]
        return compare.part(self._pairs(lever), [each for each in alike if len(each) > 1], risk)

    def _pairs(self, lever: str) -> list[Pair]:
        return self._rounds.pairs(lever, _PLAN)
