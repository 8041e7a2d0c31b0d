"""Rounds of fresh processes, one plan after the other, until each question is decided or hopeless.

Every other round runs backwards, so that a machine that slowly changes favours nobody. A question
is looked at after few fixed numbers of rounds and not after every one: whoever looks often enough
sees a gain by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotloop.plan import Plan
from hotloop.search import compare
from hotloop.search.climb import Bench
from hotloop.search.compare import LEAST_PAIRS, Comparison, Pair, self_comparison_floor
from hotloop.search.interactions import without

FUTILE_AFTER = 2
"""Rounds none of which was faster than the job as it is: it will not come to five."""
LEAST_FOR_A_PART = 3
"""Pairs that can show what one optimisation of a proven plan adds."""
MOST_ROUNDS = 8

_BASELINE, _PLAN = "", "+"  # beside the names of what is left out


@dataclass(frozen=True)
class Evidence:
    """What the rounds of one plan came to."""

    comparison: Comparison
    """The job as it is, or what it needs to run, against the plan."""
    parts: dict[str, Comparison]
    """The plan without this optimisation against the plan. Empty when the plan is not faster."""
    needed: dict[str, str]
    """Optimisations without which the job failed, and how."""
    floor: float


def measured(plan: Plan, left_out: Sequence[str], bench: Bench, start: Plan) -> Evidence:
    """`start`: what it is compared with, the job as it is unless that does not run."""
    rounds = _Rounds(plan, left_out, bench, start)
    while rounds.has_questions:
        rounds.run_one()
    return rounds.evidence()


class _Rounds:
    def __init__(self, plan: Plan, left_out: Sequence[str], bench: Bench, start: Plan) -> None:
        self._plans = {_BASELINE: start, _PLAN: plan}
        self._plans |= {lever: without(plan, lever) for lever in left_out}
        self._bench = bench
        self._open = [_BASELINE, *left_out]
        """What the plan is still to be compared with."""
        self._rounds: list[dict[str, float]] = []
        self._failed: dict[str, str] = {}
        self._proven = False

    @property
    def has_questions(self) -> bool:
        return bool(self._open)

    def run_one(self) -> None:
        first, *others = self._open
        order = [first, _PLAN, *others]
        seconds: dict[str, float] = {}
        self._rounds.append(seconds)
        for name in order if len(self._rounds) % 2 else reversed(order):
            score = self._bench.measure(self._plans[name], "proof")
            if score.value is not None:
                seconds[name] = score.value
                continue
            self._failed[name] = score.reason or "no value"
            if name in (_BASELINE, _PLAN):
                self._open.clear()
                return
            self._open.remove(name)
        self._settle()

    def evidence(self) -> Evidence:
        parts = [name for name in self._plans if name not in (_BASELINE, _PLAN)]
        compared = [name for name in parts if self._proven and name not in self._failed]
        return Evidence(
            comparison=self._headline(),
            parts={name: self._compared(name, LEAST_FOR_A_PART) for name in compared},
            needed={name: self._failed[name] for name in parts if name in self._failed},
            floor=self._floor(),
        )

    def _settle(self) -> None:
        """Closes what is decided, and everything when the plan itself is hopeless."""
        count = len(self._rounds)
        if _BASELINE in self._open and count in (FUTILE_AFTER, LEAST_PAIRS, MOST_ROUNDS):
            headline = self._compared(_BASELINE, FUTILE_AFTER)
            self._proven = headline.faster and count >= LEAST_PAIRS
            if not self._proven and self._is_hopeless(headline):
                self._open.clear()
            elif self._proven:
                self._open.remove(_BASELINE)
        if count in (LEAST_FOR_A_PART, LEAST_PAIRS, MOST_ROUNDS):
            self._open = [name for name in self._open if not self._is_decided(name)]

    def _is_hopeless(self, comparison: Comparison) -> bool:
        count = len(self._rounds)
        if count < LEAST_PAIRS:
            # One pair that says otherwise is reason enough to go on: the climb has said so too.
            return all(pair.candidate >= pair.baseline for pair in comparison.pairs)
        return count == MOST_ROUNDS or comparison.ratio < compare.counts(self._floor())

    def _is_decided(self, name: str) -> bool:
        if name == _BASELINE:
            return False
        part = self._compared(name, LEAST_FOR_A_PART)
        return part.faster or (len(self._rounds) >= LEAST_PAIRS and self._is_hopeless(part))

    def _headline(self) -> Comparison:
        before = "the job as it is" if self._plans[_BASELINE].is_empty else "the plan before"
        for name, whose in ((_BASELINE, before), (_PLAN, "the plan")):
            if name in self._failed:
                reason = f"{whose} failed in the proof: {self._failed[name]}"
                return compare.failed(self._pairs(_BASELINE), reason)
        return self._compared(_BASELINE, FUTILE_AFTER)

    def _compared(self, name: str, least_pairs: int) -> Comparison:
        return compare.compare(self._pairs(name), self._floor(), least_pairs)

    def _pairs(self, name: str) -> list[Pair]:
        both = [seconds for seconds in self._rounds if name in seconds and _PLAN in seconds]
        return [Pair(seconds[name], seconds[_PLAN]) for seconds in both]

    def _floor(self) -> float:
        alone = [seconds[_BASELINE] for seconds in self._rounds if _BASELINE in seconds]
        return self_comparison_floor(alone)
