"""Which plan makes a job run that runs out of memory as it is. Decides by measured trials alone.

A job that died can be compared with nothing. What is looked for is therefore the plan that changes
least, and the first that runs is what all others are then compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotloop.plan import LeverSetting, Plan
from hotloop.search.climb import Bench
from hotloop.search.interactions import combined, without
from hotloop.search.score import Score

PURPOSE = "rescue"

Rung = tuple[LeverSetting, ...]
"""Tried as one: an optimisation, and what it cannot be without."""


@dataclass(frozen=True)
class Attempt:
    plan: Plan
    ran: bool
    reason: str
    """Why not; empty when it ran."""


@dataclass(frozen=True)
class Rescue:
    """Of a job that runs out of memory as it is."""

    ended: str
    """How the job as it is ended."""
    tried: tuple[Attempt, ...] = ()
    plan: Plan | None = None
    """The first that ran, without what it can be without. None: nothing ran."""
    divisor: int = 1
    """So many times smaller are the batches on which the job as it is runs, and was compared."""
    aside: bool = False
    """The job as it is was compared whole: what autograd keeps lay in the host's memory."""
    shown: tuple[str, ...] = ()
    """What of the training was compared with the job as it is, in sentences."""
    not_shown: tuple[str, ...] = ()
    differs: str = ""
    """What was seen to be another training."""
    cost: float | None = None
    """Times as long as the job as it is takes for a step, on those smaller batches."""


def rescue(ended: str, ladder: Sequence[Rung], bench: Bench) -> Rescue:
    """One rung after the other, the least costly first; then more and more of them together."""
    attempts = _Attempts(bench)
    plan = attempts.first_of(ladder) or attempts.more_and_more(ladder)
    if plan is not None:
        plan = attempts.fewer(plan, ladder)
    return Rescue(ended, tuple(attempts.tried), plan)


class _Attempts:
    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._scores: dict[str, tuple[Plan, Score]] = {}
        """Of every plan that was run, in that order."""

    @property
    def tried(self) -> list[Attempt]:
        scores = self._scores.values()
        return [Attempt(plan, score.value is not None, score.reason) for plan, score in scores]

    def first_of(self, ladder: Sequence[Rung]) -> Plan | None:
        return next((plan for plan in map(_of, ladder) if self._runs(plan)), None)

    def more_and_more(self, ladder: Sequence[Rung]) -> Plan | None:
        """What failed by itself for another reason than memory will fail here, too."""
        plan = Plan()
        for rung in [one for one in ladder if self._score(_of(one)).out_of_memory]:
            plan = combined(plan, rung)
            if self._runs(plan):
                return plan
            if idle := self._score(plan).idle:  # it ran, but for what took no effect
                return self._without_idle(plan, idle)
        return None

    def fewer(self, plan: Plan, ladder: Sequence[Rung]) -> Plan:
        """Without what it can be without, the costliest first."""
        for rung in reversed(ladder):
            for setting in rung:
                shorter = without(plan, setting.lever)
                if shorter not in (plan, Plan()) and self._runs(shorter):
                    plan = shorter
        return plan

    def _without_idle(self, plan: Plan, idle: Sequence[str]) -> Plan | None:
        for lever in idle:
            plan = without(plan, lever)
        return plan if not plan.is_empty and self._runs(plan) else None

    def _runs(self, plan: Plan) -> bool:
        return self._score(plan).value is not None

    def _score(self, plan: Plan) -> Score:
        """Each plan is run once."""
        key = repr(plan.levers)
        if key not in self._scores:
            self._scores[key] = plan, self._bench.measure(plan, PURPOSE)
        return self._scores[key][1]


def _of(rung: Rung) -> Plan:
    return combined(Plan(), rung)
