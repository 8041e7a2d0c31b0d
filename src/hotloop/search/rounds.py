"""Rounds of fresh processes: in each, plans run one after the other, and are compared in pairs.

Every other round runs backwards, so that a machine that slowly changes favours nobody.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hotloop.plan import Plan
from hotloop.search.climb import Bench
from hotloop.search.compare import Pair


class Rounds:
    def __init__(
        self,
        plans: Mapping[str, Plan],
        bench: Bench,
        vital: Collection[str],
        purpose: str = "proof",
    ) -> None:
        """`plans`: by the names they have here. `vital`: without which there is no comparison."""
        self._plans = plans
        self._purpose = purpose
        self._bench = bench
        self._vital = vital
        self._seconds: list[dict[str, float]] = []
        self.failed: dict[str, str] = {}
        """Which came to nothing, and why."""

    @property
    def count(self) -> int:
        return len(self._seconds)

    def run_one(self, among: Sequence[str]) -> None:
        """In this order, or backwards. Raises BudgetSpent, and then keeps what came before it."""
        self._seconds.append({})
        for name in among if self.count % 2 else reversed(among):
            score = self._bench.measure(self._plans[name], self._purpose)
            if score.value is not None:
                self._seconds[-1][name] = score.value
                continue
            self.failed[name] = score.reason or "no value"
            if name in self._vital:
                break

    def pairs(self, baseline: str, candidate: str) -> list[Pair]:
        """Of the rounds in which both ran."""
        both = [each for each in self._seconds if baseline in each and candidate in each]
        return [Pair(each[baseline], each[candidate]) for each in both]

    def seconds(self, name: str) -> list[float]:
        return [each[name] for each in self._seconds if name in each]
