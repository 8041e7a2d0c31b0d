"""Is a plan faster than what the search began with? Five pairs of processes, or eight.

It is looked at after few fixed numbers of pairs and not after every one: whoever looks often enough
sees a gain by chance. For a pair that was disturbed another one is run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hotloop.plan import Plan
from hotloop.search import compare
from hotloop.search.climb import Bench
from hotloop.search.compare import LEAST_PAIRS, Comparison, Pair, self_comparison_floor, undisturbed
from hotloop.search.rounds import Rounds

FUTILE_AFTER = 2
"""Pairs none of which was faster than the job as it is: it will not come to five."""
MOST_PAIRS = 8

_START, _PLAN, _RIVAL = "the start", "the plan", "its rival"


@dataclass(frozen=True)
class Duel:
    comparison: Comparison
    """The job as it is, or what it needs to run, against the plan."""
    floor: float
    """The gain that this machine may show when a plan is compared with itself."""
    rival: Comparison | None
    """The plan against its rival, where it has one and both ran."""


def fought(start: Plan, plan: Plan, bench: Bench, rival: Plan | None = None) -> Duel:
    """`rival`: another plan, which is run beside the two. Raises BudgetSpent."""
    duel = _Duel(start, plan, bench, rival)
    while not duel.is_over():
        duel.run_a_round()
    return duel.result()


class _Duel:
    def __init__(self, start: Plan, plan: Plan, bench: Bench, rival: Plan | None) -> None:
        plans = {_START: start, _PLAN: plan} | ({_RIVAL: rival} if rival else {})
        self._before = "the job as it is" if start.is_empty else "the plan before"
        self._rounds = Rounds(plans, bench, vital=(_START, _PLAN))
        self._names = list(plans)

    def run_a_round(self) -> None:
        self._rounds.run_one([name for name in self._names if name not in self._rounds.failed])

    def is_over(self) -> bool:
        if self._failed():
            return True
        count = len(self._pairs())
        if count == FUTILE_AFTER:
            # One pair that says otherwise is reason enough to go on: the climb has said so too.
            return all(pair.candidate >= pair.baseline for pair in self._pairs())
        if count == LEAST_PAIRS:
            found = self._compared()
            return found.faster or found.ratio < compare.counts(self._floor())
        return count >= MOST_PAIRS

    def result(self) -> Duel:
        failed = self._failed()
        found = compare.failed(self._pairs(), failed) if failed else self._compared()
        found = replace(found, disturbed=tuple(undisturbed(self._all_pairs())[1]))
        against = self._rounds.pairs(_PLAN, _RIVAL)
        rival = compare.part(against, [against]) if len(against) >= FUTILE_AFTER else None
        return Duel(found, self._floor(), rival)

    def _failed(self) -> str:
        for name, whose in ((_START, self._before), (_PLAN, "the plan")):
            if name in self._rounds.failed:
                return f"{whose} failed in the proof: {self._rounds.failed[name].rstrip('.')}"
        return ""

    def _compared(self) -> Comparison:
        return compare.compare(self._pairs(), self._floor(), FUTILE_AFTER)

    def _pairs(self) -> list[Pair]:
        return undisturbed(self._all_pairs())[0]

    def _all_pairs(self) -> list[Pair]:
        return self._rounds.pairs(_START, _PLAN)

    def _floor(self) -> float:
        return self_comparison_floor([pair.baseline for pair in self._pairs()])
