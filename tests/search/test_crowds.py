"""A climb on a machine that others use as well: what was measured beside them and what was not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hotloop.plan import Plan
from hotloop.search.climb import BESIDE, Climb, climb
from hotloop.search.score import Score
from tests.simulated import SimulatedBench, candidates, gains, words

FOR_EVER = 1e9
GAINS = {"bf16": 1.5, "compile": 1.3, "tf32": 0.8, "threads": 1.0}


@dataclass
class Shared(SimulatedBench):
    """A machine on which others take their share from one measurement on, until another."""

    comes: int = 0
    goes: int = 1000
    crowd: float = 0.6
    slower: float = 3.0
    purposes: list[str] = field(default_factory=list)

    def measure(self, plan: Plan, purpose: str, give_up_above: float | None = None) -> Score:
        score = super().measure(plan, purpose, give_up_above)
        self.purposes.append(purpose)
        if not self.comes < len(self.purposes) <= self.goes or score.value is None:
            return score
        return replace(score, value=score.value * self.slower, crowd=self.crowd)


def climbed(bench: SimulatedBench, crowd: float = 0.0, baseline: float = 1.0) -> Climb:
    offered = candidates(bf16=0.5, compile=0.4, tf32=0.3, threads=0.2)
    return climb(baseline, offered, bench, FOR_EVER, crowd=crowd)


def kept(found: Climb) -> set[str]:
    return {*words(found.plan)}


def test_others_who_come_in_the_middle_refuse_nothing() -> None:
    bench = Shared(gains(**GAINS), comes=1)
    found = climbed(bench)
    assert kept(found) == {"bf16", "compile"}
    assert abs(found.gain - 1.5 * 1.3) < 1e-9
    assert bench.purposes.count(BESIDE) == 1  # from then on all are alike


def test_others_who_leave_make_nothing_look_good() -> None:
    bench = Shared(gains(**GAINS), goes=1)
    found = climbed(bench, crowd=0.6, baseline=3.0)
    assert kept(found) == {"bf16", "compile"}
    assert abs(found.gain - 1.5 * 1.3) < 1e-9


def test_the_best_until_then_is_what_is_measured_again() -> None:
    bench = Shared(gains(**GAINS), comes=1)
    climbed(bench)
    (again,) = [plan for plan, purpose, _ in bench.measured if purpose == BESIDE]
    assert words(again) == ["bf16"]


def test_a_crowd_that_is_always_there_costs_nothing() -> None:
    bench = Shared(gains(**GAINS))
    assert kept(climbed(bench, crowd=0.6, baseline=3.0)) == {"bf16", "compile"}
    assert BESIDE not in bench.purposes


def test_a_few_percent_are_no_crowd() -> None:
    bench = Shared(gains(**GAINS), comes=1, crowd=0.1, slower=1.0)
    climbed(bench)
    assert BESIDE not in bench.purposes


def test_what_fails_beside_others_has_failed() -> None:
    law = gains(**GAINS)
    bench = Shared(lambda chosen: None if "bf16" in chosen else law(chosen), comes=0)
    found = climbed(bench)
    assert kept(found) == {"compile"}
    assert bench.purposes.count(BESIDE) == 1
