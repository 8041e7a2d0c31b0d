from __future__ import annotations

import pytest

from hotloop.plan import Plan
from hotloop.search.doubt import AGAIN, CLOSE, doubts
from tests.simulated import SimulatedBench, gains, plan_of

PLAN = plan_of("compile")


def test_what_does_not_hold_is_not_believed() -> None:
    bench = SimulatedBench(gains(compile=1.0))
    assert doubts(Plan(), PLAN, 1.09, bench) == "looked at again, it was 1.000× as fast"
    assert [plan for plan, _, _ in bench.measured] == [Plan(), PLAN, PLAN, Plan()]
    assert {purpose for _, purpose, _ in bench.measured} == {AGAIN}


def test_one_round_will_do_for_what_is_slower() -> None:
    bench = SimulatedBench(gains(compile=0.9))
    assert "0.900×" in doubts(Plan(), PLAN, 1.09, bench)
    assert len(bench.measured) == 2


def test_what_holds_is_believed() -> None:
    assert doubts(Plan(), PLAN, 1.06, SimulatedBench(gains(compile=1.05))) == ""


def test_a_large_gain_is_not_doubted() -> None:
    bench = SimulatedBench(gains(compile=1.0))
    assert doubts(Plan(), PLAN, CLOSE, bench) == ""
    assert bench.measured == []


def test_who_fails_or_has_no_time_is_not_judged_here() -> None:
    failing = SimulatedBench(lambda levers: None if levers else 1.0)
    assert doubts(Plan(), PLAN, 1.05, failing) == ""
    assert doubts(Plan(), PLAN, 1.05, SimulatedBench(gains(compile=1.0), budget=3)) == ""


@pytest.mark.parametrize(("gain", "least", "most"), [(1.0, 0, 70), (1.1, 160, 200)])
def test_how_often_chance_is_believed(gain: float, least: int, most: int) -> None:
    """Of 200 jobs, whose processes differ by 5%."""
    benches = [SimulatedBench(gains(compile=gain), noise=0.05, seed=seed) for seed in range(200)]
    believed = sum(not doubts(Plan(), PLAN, 1.09, bench) for bench in benches)
    assert least <= believed <= most
