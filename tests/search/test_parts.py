"""What each optimisation of a proven plan adds."""

from __future__ import annotations

import pytest

from hotloop.plan import Plan
from hotloop.search.compare import Pair
from hotloop.search.interactions import names
from hotloop.search.parts import LAST_LOOK, measured
from hotloop.search.score import Score
from tests.simulated import SimulatedBench, gains, plan_of

THREE = ("tf32", "bf16", "compile")


def test_what_is_clear_is_decided_early_either_way() -> None:
    bench = SimulatedBench(gains(bf16=1.5, compile=1.4, tf32=0.8), 0.005)
    found = measured(plan_of(*THREE), THREE, bench)
    assert found.passengers == ("tf32",)
    assert len(bench.measured) == 2 * (1 + len(THREE))
    assert {one.lever: one.comparison.faster for one in found.contributions} == {
        "tf32": False,
        "bf16": True,
        "compile": True,
    }


def test_what_is_not_is_looked_at_for_five_rounds_and_the_rest_is_not_run_again() -> None:
    bench = SimulatedBench(gains(bf16=1.04, compile=3.0), 0.03, seed=2)
    measured(plan_of("bf16", "compile"), ("bf16", "compile"), bench)
    without_bf16 = sum(names(plan) == ("compile",) for plan, _, _ in bench.measured)
    without_compile = sum(names(plan) == ("bf16",) for plan, _, _ in bench.measured)
    assert without_bf16 == LAST_LOOK > without_compile


def test_passengers_come_the_least_useful_first() -> None:
    bench = SimulatedBench(gains(bf16=0.9, compile=3.0, tf32=1.0), 0.001)
    assert measured(plan_of(*THREE), THREE, bench).passengers == ("bf16", "tf32")


@pytest.mark.parametrize(("gain", "gone"), [(1.015, ()), (1.005, ("tf32",))])
def test_a_part_may_be_smaller_than_a_gain_that_is_worth_a_change(
    gain: float, gone: tuple[str, ...]
) -> None:
    bench = SimulatedBench(gains(bf16=2.0, compile=1.5, tf32=gain), 0.001)
    assert measured(plan_of(*THREE), THREE, bench).passengers == gone


@pytest.mark.parametrize("budget", range(8))
def test_what_is_not_decided_when_the_time_is_over_is_no_passenger(budget: int) -> None:
    bench = SimulatedBench(gains(compile=3.0), 0.001, budget=budget)
    found = measured(plan_of(*THREE), THREE, bench)
    assert found.passengers == ()
    assert not found.failed


def test_the_spread_of_all_parts_together_decides_what_two_pairs_alone_could_not() -> None:
    """By itself, two pairs that are 6% apart would need a gain of 1.4×."""
    decided = 0
    for seed in range(40):
        bench = SimulatedBench(gains(bf16=1.3, compile=1.3, tf32=1.3), 0.03, seed)
        measured(plan_of(*THREE), THREE, bench)
        decided += len(bench.measured) == 2 * (1 + len(THREE))
    assert decided >= 10


class TestWithTheSpreadOfTheProof:
    @staticmethod
    def proof(noise: float) -> list[Pair]:
        """Five pairs that differ by about this much."""
        return [Pair(2.0 * (1 + noise * sign), 1.0) for sign in (-1.2, -0.6, 0.0, 0.6, 1.2)]

    def test_one_pair_tells_what_is_far_beyond_it(self) -> None:
        bench = SimulatedBench(gains(bf16=1.5, compile=1.06, tf32=1.2), 0.002)
        found = measured(plan_of(*THREE), THREE, bench, self.proof(0.004))
        assert len(bench.measured) == 1 + len(THREE)
        assert found.passengers == ()
        own = {one.lever: one.comparison for one in found.contributions}
        assert len(own["compile"].pairs) == 1
        assert own["compile"].low < 1.06 < own["compile"].high

    def test_one_pair_makes_no_passengers(self) -> None:
        """The plan's one process may have been the slow one."""
        bench = SimulatedBench(gains(bf16=1.5, compile=1.3, tf32=0.8), 0.002)
        found = measured(plan_of(*THREE), THREE, bench, self.proof(0.004))
        assert found.passengers == ("tf32",)
        assert sum(names(plan) == ("bf16", "compile") for plan, _, _ in bench.measured) == 2

    def test_one_pair_tells_nothing_on_a_busy_machine(self) -> None:
        bench = SimulatedBench(gains(bf16=1.5, compile=1.06, tf32=1.0), 0.05)
        measured(plan_of(*THREE), THREE, bench, self.proof(0.06))
        assert len(bench.measured) > 1 + len(THREE)

    def test_a_first_pair_is_seldom_wrong(self) -> None:
        """With the noise between processes that was measured; a passenger may go in 1 of 1000."""
        kept = 0
        for seed in range(200):
            bench = SimulatedBench(gains(), 0.1, seed=seed)
            took = [bench.measure(Plan(), "proof").value or 0.0 for _ in range(10)]
            proof = [Pair(*both) for both in zip(took[::2], took[1::2], strict=True)]
            found = measured(plan_of("bf16"), ("bf16",), bench, proof)
            (own,) = found.contributions
            kept += own.comparison.faster and len(own.comparison.pairs) == 1
        assert kept <= 2

    def test_when_the_time_is_over_one_pair_is_shown(self) -> None:
        bench = SimulatedBench(gains(bf16=1.05, compile=3.0), 0.001, budget=4)
        found = measured(plan_of(*THREE), THREE, bench, self.proof(0.1))
        assert len(found.contributions) == len(THREE)
        assert found.passengers == ()


class FailingWhole(SimulatedBench):
    def measure(self, plan: Plan, purpose: str, give_up_above: float | None = None) -> Score:
        score = super().measure(plan, purpose, give_up_above)
        return Score(None, "out of memory") if names(plan) == THREE else score


def test_a_plan_that_fails_leaves_nothing_to_compare() -> None:
    found = measured(plan_of(*THREE), THREE, FailingWhole(gains()))
    assert found.failed == "out of memory"
    assert not found.contributions
    assert not found.passengers
