from __future__ import annotations

from hotloop.plan import LeverSetting, Plan
from hotloop.search.candidate import Candidate
from hotloop.search.climb import Climb, climb
from hotloop.search.interactions import names
from hotloop.search.ladder import climbed, rungs
from tests.simulated import Network, SimulatedBench, plan_of

LAUNCH_BOUND = Network(launching=8.0, computing=5.0)
SHELF = [
    Candidate("bf16", ({},), 0.5),
    Candidate("compile", ({"mode": "default"}, {"mode": "reduce-overhead"}), 0.4),
    Candidate("fused_optimizer", ({},), 0.1),
]


def searched() -> Climb:
    return climb(8.0, SHELF, SimulatedBench(LAUNCH_BOUND), patience=float("inf"))


def test_what_loses_until_another_is_there_comes_after_it() -> None:
    found = searched()
    assert names(found.plan) == ("bf16", "compile")  # as they are applied
    order = [chosen.lever for chosen in climbed(found.plan, found)]
    assert order.index("compile") < order.index("bf16")


def test_every_rung_is_lower_than_the_one_before() -> None:
    found = searched()
    bench = SimulatedBench(LAUNCH_BOUND)
    steps = [bench.measure(rung, "rung").value for rung in (*rungs(found.plan, found), found.plan)]
    values = [8.0, *(step for step in steps if step is not None)]
    assert len(values) == len(found.plan.levers) + 1
    assert values == sorted(values, reverse=True)


def test_what_the_climb_began_with_stands_first_and_what_came_after_it_last() -> None:
    found = Climb(plan_of("allocator", "bf16"), ())
    plan = plan_of("batch_size", "bf16", "allocator")
    assert [one.lever for one in climbed(plan, found)][-1] == "batch_size"


def test_without_a_climb_the_order_of_application_is_all_there_is() -> None:
    plan = plan_of("tf32", "bf16")
    assert climbed(plan, None) == plan.levers
    assert rungs(plan, None) == (plan_of("tf32"),)


def test_a_rung_that_lacks_what_it_needs_is_left_out() -> None:
    plan = Plan((LeverSetting("fused_attention", {}), LeverSetting("compile", {})))
    assert rungs(plan, None) == ()


def test_a_plan_of_one_has_no_rungs_on_the_way() -> None:
    assert rungs(plan_of("bf16"), None) == ()
