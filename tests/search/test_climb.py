"""What is tried next, on simulated jobs whose optimisations interact as they were seen to."""

from __future__ import annotations

from typing import Any

import pytest

from hotloop.levers.bf16 import Bf16
from hotloop.levers.compile import Compile
from hotloop.plan import Plan
from hotloop.search.candidate import Candidate
from hotloop.search.climb import CLEARLY_WORSE, Climb, climb
from hotloop.search.interactions import names
from hotloop.search.score import Score
from tests.simulated import (
    Law,
    Network,
    SimulatedBench,
    candidates,
    gains,
    plan_of,
    plans,
    words,
)

FOR_EVER = 1e9
MODES: tuple[dict[str, Any], ...] = ({"mode": "default"}, {"mode": "reduce-overhead"})


def resnet18(levers: frozenset[str]) -> float:
    """Milliseconds on an H200, batch 32. What was not measured is put in between."""
    known = {
        frozenset(): 7.65,
        frozenset({"bf16"}): 10.8,
        frozenset({"channels_last"}): 8.2,
        frozenset({"compile"}): 5.6,
        frozenset({"bf16", "channels_last"}): 11.2,
        frozenset({"bf16", "compile"}): 4.4,
        frozenset({"channels_last", "compile"}): 5.8,
        frozenset({"bf16", "channels_last", "compile"}): 2.8,
    }
    slower = 1.16 if "tf32" in levers and "compile" not in levers else 1.0
    fused = 0.94 if "fused_optimizer" in levers else 1.0
    return known[levers & {"bf16", "channels_last", "compile"}] * slower * fused


def volumes(levers: frozenset[str]) -> float:
    """A 3D network: channels last costs a third by itself, and gains a little once compiled."""
    if "compile" in levers:
        time = 33.9 * (0.959 if "channels_last" in levers else 1.0)
    else:
        time = 48.9 * (1.337 if "channels_last" in levers else 1.0)
    return time * (1.0 if "bf16" in levers else 1.3)


SHARES = {
    "tf32": 0.4,
    "bf16": 0.4,
    "compile": 0.24,
    "channels_last": 0.16,
    "fused_optimizer": 0.05,
}
LOADING = {"loader_workers": 0.8, "tf32": 0.1, "bf16": 0.1, "compile": 0.06, "pin_memory": 0.02}
HIDDEN = {**LOADING, "loader_workers": 0.03}
LITTLE = "one where everything helps a little"

JOBS: dict[str, tuple[Law, dict[str, float]]] = {
    "a launch-bound ResNet-18": (resnet18, SHARES),
    "a 3D network": (volumes, SHARES),
    "one that is limited by arithmetic": (Network(2.0, 9.0), SHARES),
    "one that is limited by launches": (Network(9.0, 2.0), SHARES),
    "one that waits for its loader": (Network(3.0, 5.0, 20.0), LOADING),
    "one whose step hides its loader": (Network(3.0, 9.0, 8.0), HIDDEN),
    "one that waits for two things by turns": (Network(2.0, 9.0, 8.95), LOADING),
    "one where nothing helps": (gains(), SHARES),
    "one where everything hurts": (gains(**dict.fromkeys(SHARES, 0.9)), SHARES),
    LITTLE: (gains(**dict.fromkeys(SHARES, 1.015)), SHARES),
}


def climbed(law: Law, shares: dict[str, float], bench: SimulatedBench) -> Climb:
    baseline = law(frozenset())
    assert baseline is not None
    return climb(baseline, candidates(**shares), bench, FOR_EVER)


def over_the_best(job: str, bench: SimulatedBench) -> float:
    law, shares = JOBS[job]
    found = law(frozenset(words(climbed(law, shares, bench).plan)))
    assert found is not None
    every = plans(law, candidates(**shares)).values()
    return found / min(value for value in every if value is not None)


@pytest.mark.parametrize("job", JOBS)
def test_the_plan_is_nearly_the_best_of_32_after_at_most_ten_trials(job: str) -> None:
    bench = SimulatedBench(JOBS[job][0])
    assert over_the_best(job, bench) <= 1.03
    assert 1 + len(bench.measured) <= 10


@pytest.mark.parametrize("job", [job for job in JOBS if job != LITTLE])
def test_noise_hides_no_gain_that_is_larger_than_itself(job: str) -> None:
    for seed in range(20):
        assert over_the_best(job, SimulatedBench(JOBS[job][0], 0.01, seed)) <= 1.03


def test_gains_as_small_as_the_noise_are_mostly_found() -> None:
    """One process each cannot tell 1.5% from a spread of 1%: about one climb in ten misses some."""
    found = [over_the_best(LITTLE, SimulatedBench(JOBS[LITTLE][0], 0.01, s)) for s in range(100)]
    assert sum(ratio <= 1.03 for ratio in found) >= 80


def test_whatever_the_interactions_ten_trials_are_the_most() -> None:
    for seed in range(200):
        bench = SimulatedBench(gains(), noise=0.3, seed=seed)
        climbed(gains(), SHARES, bench)
        assert 1 + len(bench.measured) <= 10


def test_no_plan_is_measured_twice() -> None:
    for law, shares in JOBS.values():
        bench = SimulatedBench(law, noise=0.05)
        climbed(law, shares, bench)
        measured = [plan for plan, _, _ in bench.measured]
        assert all(plan not in measured[:index] for index, plan in enumerate(measured))


def test_the_same_measurements_lead_to_the_same_climb() -> None:
    first, second = (
        climbed(resnet18, SHARES, SimulatedBench(resnet18, noise=0.02)) for _ in range(2)
    )
    assert first == second


def test_the_most_promising_comes_first_and_ties_in_the_order_of_application() -> None:
    bench = SimulatedBench(gains())
    climbed(gains(), {"compile": 0.2, "channels_last": 0.3, "bf16": 0.3}, bench)
    assert [names(plan) for plan, _, _ in bench.measured[:3]] == [
        ("bf16",),
        ("channels_last",),
        ("compile",),
    ]


def test_one_that_does_the_work_of_another_comes_first_and_spares_its_trial() -> None:
    shares = {"tf32": 0.3, "bf16": 0.3, "compile": 0.2}
    found = climbed(gains(), shares, bench := SimulatedBench(gains(bf16=1.5)))
    assert [names(plan) for plan, _, _ in bench.measured[:2]] == [("bf16",), ("bf16", "compile")]
    assert found.spared == ("tf32",)
    found = climbed(gains(), shares, bench := SimulatedBench(gains(bf16=0.8, tf32=1.5)))
    assert [names(plan) for plan, _, _ in bench.measured[:2]] == [("bf16",), ("tf32",)]
    assert names(found.plan) == ("tf32",)


def test_a_plan_applies_its_optimisations_in_their_own_order() -> None:
    law = gains(fused_optimizer=1.5, compile=1.5, bf16=1.5)
    shares = {"fused_optimizer": 0.5, "compile": 0.4, "bf16": 0.3}
    found = climbed(law, shares, SimulatedBench(law))
    assert names(found.plan) == ("bf16", "compile", "fused_optimizer")


def test_each_trial_may_end_early_when_it_is_clearly_worse_than_the_best() -> None:
    law = gains(bf16=2.0)
    bench = SimulatedBench(law)
    climbed(law, {"bf16": 0.5, "channels_last": 0.4}, bench)
    assert [limit for _, _, limit in bench.measured] == [CLEARLY_WORSE, CLEARLY_WORSE / 2]
    assert {purpose for _, purpose, _ in bench.measured} == {"screen"}


def test_what_was_tried_says_what_it_was_held_against() -> None:
    law = gains(bf16=2.0, compile=1.005, channels_last=0.5)
    shares = {"bf16": 0.5, "compile": 0.4, "channels_last": 0.3}
    found = climbed(law, shares, SimulatedBench(law))
    told = [(one.lever, one.best, one.kept, one.reason) for one in found.tried[:3]]
    assert told == [
        ("bf16", 1.0, True, ""),
        ("compile", 0.5, False, "1.005× is less than the 1.010× that would count"),
        ("channels_last", 0.5, False, "worse: 0.500× the best until then"),
    ]
    assert found.tried[1].plan == plan_of("bf16", "compile")
    assert found.untried == ()


def test_a_trial_that_fails_is_recorded_and_the_climb_goes_on() -> None:
    def law(levers: frozenset[str]) -> float | None:
        return None if "compile" in levers else gains(bf16=1.5)(levers)

    found = climbed(law, {"compile": 0.5, "bf16": 0.4}, SimulatedBench(law))
    assert names(found.plan) == ("bf16",)
    assert [(one.lever, one.kept, one.reason) for one in found.tried] == [
        ("compile", False, "out of memory"),
        ("bf16", True, ""),
    ]


def compiled(law: Law) -> tuple[Climb, SimulatedBench]:
    offered = [Candidate("compile", MODES, 0.5), *candidates(bf16=0.4)]
    bench = SimulatedBench(law)
    baseline = law(frozenset())
    assert baseline is not None
    return climb(baseline, offered, bench, FOR_EVER), bench


def test_a_better_setting_takes_the_place_of_a_good_one() -> None:
    found, _ = compiled(gains(**{"compile": 1.3, "compile:reduce-overhead": 1.5}))
    assert [chosen.setting for chosen in found.plan.levers] == [MODES[1]]


def test_a_setting_that_came_second_is_tried_again_once_partners_have_joined() -> None:
    """CUDA graphs win nothing until bf16 has made the kernels short."""

    def law(levers: frozenset[str]) -> float:
        time = (1 if "bf16" in levers else 1.5) * (1 if "compile" in levers else 1.3)
        return time / 2 if {"bf16", "compile:reduce-overhead"} <= levers else time

    found, bench = compiled(law)
    assert [chosen.setting for chosen in found.plan.levers] == [{}, MODES[1]]
    assert bench.measured[-1][0] == found.plan


def test_a_second_setting_is_not_tried_again_when_nothing_joined() -> None:
    _, bench = compiled(gains(compile=1.3))
    modes = [plan.levers[0].setting for plan, _, _ in bench.measured if len(plan.levers) == 1]
    assert modes == list(MODES)


class NotApplied(SimulatedBench):
    def measure(self, plan: Plan, purpose: str, give_up_above: float | None = None) -> Score:
        super().measure(plan, purpose, give_up_above)
        return Score(None, "the script already compiles its model", applied=False)


def test_what_did_not_take_effect_is_not_tried_in_another_setting() -> None:
    bench = NotApplied(gains())
    found = climb(1.0, [Candidate("compile", MODES, 0.5)], bench, FOR_EVER)
    assert len(bench.measured) == 1
    assert found.tried[0].reason == "the script already compiles its model"


def test_without_a_gain_it_stops_when_patience_is_over_and_names_what_is_left() -> None:
    bench = SimulatedBench(gains())
    found = climb(1.0, candidates(**SHARES), bench, patience=2.5)
    assert len(bench.measured) == 3
    assert found.plan.is_empty
    assert found.untried == ("channels_last", "fused_optimizer")


def test_with_a_gain_patience_does_not_matter() -> None:
    law = gains(bf16=1.5)
    found = climb(1.0, candidates(**SHARES), SimulatedBench(law), patience=0.5)
    assert found.untried == ()


def test_a_job_with_nothing_to_win_takes_few_trials() -> None:
    bench = SimulatedBench(gains(**dict.fromkeys(SHARES, 0.99)))
    assert climbed(gains(), SHARES, bench).plan.is_empty
    assert len(bench.measured) <= len(SHARES) + 1


def test_a_spent_budget_ends_the_climb_with_what_was_found() -> None:
    law = gains(bf16=1.5, compile=1.5)
    found = climbed(law, SHARES, SimulatedBench(law, budget=1))
    assert names(found.plan) == ("bf16",)
    assert found.untried == ("compile", "channels_last", "fused_optimizer")


def test_what_conflicts_gives_way_to_the_better_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Compile, "conflicts", ("bf16",))
    law = gains(bf16=1.2, compile=1.5)
    bench = SimulatedBench(law)
    found = climbed(law, {"bf16": 0.5, "compile": 0.4}, bench)
    assert names(found.plan) == ("compile",)
    assert all(len(plan.levers) == 1 for plan, _, _ in bench.measured)


def test_one_that_requires_another_brings_it_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bf16, "requires", ("compile",))
    law = gains(bf16=1.2)
    found = climbed(law, {"bf16": 0.5, "compile": 0.4}, SimulatedBench(law))
    assert found.tried[0].lever == "bf16+compile"
    assert found.plan == plan_of("bf16", "compile")


def test_one_that_requires_what_is_not_offered_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bf16, "requires", ("compile",))
    bench = SimulatedBench(gains(bf16=1.2))
    found = climbed(gains(), {"bf16": 0.5}, bench)
    assert found.tried[0].reason == "it needs compile"
    assert bench.measured == []


LATE: dict[str, Any] = {"mode": "reduce-overhead"}


def lately(law: Law) -> tuple[Climb, SimulatedBench]:
    """What may help a job that has become much faster."""
    kept = ({"mode": "default", "dynamic": True},)
    offered = [Candidate("compile", kept, 0.5, late=(LATE,)), *candidates(bf16=0.4)]
    bench = SimulatedBench(law)
    return climb(1.0, offered, bench, FOR_EVER), bench


def test_a_late_change_is_made_to_the_setting_that_was_kept() -> None:
    found, _ = lately(gains(**{"compile": 1.3, "bf16": 1.5, f"compile:{LATE['mode']}": 1.2}))
    assert found.plan.levers[1].setting == {"mode": "reduce-overhead", "dynamic": True}
    found, bench = lately(gains(compile=1.3, bf16=1.5))
    assert found.plan.levers[1].setting == {"mode": "default", "dynamic": True}
    assert [plan.levers[-1].setting["mode"] for plan, _, _ in bench.measured].count(
        LATE["mode"]
    ) == 1


@pytest.mark.parametrize("gain", [1.3, 0.9])
def test_a_job_that_is_not_much_faster_is_spared_late_changes(gain: float) -> None:
    _, bench = lately(gains(compile=gain, bf16=1.1))
    assert all(LATE["mode"] not in str(plan) for plan, _, _ in bench.measured)


DEAR: dict[str, Any] = {"mode": "max-autotune-no-cudagraphs"}


def thorough(law: Law, budget: int | None = None) -> tuple[Climb, SimulatedBench]:
    """The dear setting belongs to what is tried first."""
    offered = [Candidate("compile", MODES, 0.5, dear=(DEAR,)), *candidates(bf16=0.4)]
    bench = SimulatedBench(law, budget=budget)
    return climb(1.0, offered, bench, FOR_EVER), bench


def test_a_dear_setting_comes_last_and_stays_if_it_helps() -> None:
    law = gains(**{"compile": 1.3, "bf16": 1.5, f"compile:{DEAR['mode']}": 1.2})
    found, bench = thorough(law)
    assert found.plan.levers[1].setting == DEAR
    assert bench.measured[-1][0] == found.plan
    found, bench = thorough(gains(compile=1.3, bf16=1.5))
    assert found.plan.levers[1].setting == MODES[0]
    assert bench.measured[-1][0].levers[1].setting == DEAR


def test_a_dear_setting_of_what_did_not_help_is_not_tried() -> None:
    _, bench = thorough(gains(bf16=1.5))
    assert all(DEAR not in [one.setting for one in plan.levers] for plan, _, _ in bench.measured)


def test_a_dear_setting_for_which_there_is_no_time_costs_nothing_else() -> None:
    law = gains(compile=1.3, bf16=1.5)
    _, bench = thorough(law)
    found, _ = thorough(law, budget=len(bench.measured) - 1)
    assert names(found.plan) == ("bf16", "compile") and found.untried == ()


BLOCKS = {"compile": 0.3, "compile_blocks": 0.25}


@pytest.mark.parametrize("gain", [1.5, 0.9])
def test_blocks_are_not_tried_where_the_whole_was_measured(gain: float) -> None:
    law = gains(compile=gain, compile_blocks=1.4)
    found = climbed(law, BLOCKS, SimulatedBench(law))
    assert found.spared == ("compile_blocks",) and found.untried == ()
    assert [one.lever for one in found.tried] == ["compile"]


def test_blocks_stand_in_for_a_whole_that_cannot_be() -> None:
    def law(levers: frozenset[str]) -> float | None:
        return None if "compile" in levers else gains(compile_blocks=1.4)(levers)

    found = climbed(law, BLOCKS, SimulatedBench(law))
    assert names(found.plan) == ("compile_blocks",) and found.spared == ()
    alone = climbed(law, {"compile_blocks": 0.25}, SimulatedBench(law))
    assert names(alone.plan) == ("compile_blocks",)


def test_blocks_come_right_after_the_whole_and_do_not_suffer_from_its_taking_long() -> None:
    def law(levers: frozenset[str]) -> float | None:
        return None if "compile" in levers else 1.0

    offered = [
        Candidate("compile", ({},), 0.3, predicted=0.9),
        Candidate("compile_blocks", ({},), 0.01),
        *candidates(bf16=0.5),
    ]
    bench = SimulatedBench(law)
    found = climb(1.0, offered, bench, patience=0.5)
    assert [names(plan) for plan, _, _ in bench.measured] == [("compile",), ("compile_blocks",)]
    assert found.untried == ("bf16",)


def test_blocks_have_the_partners_of_the_whole() -> None:
    def law(levers: frozenset[str]) -> float | None:
        if "compile" in levers:
            return None
        both = {"bf16", "compile_blocks"} <= levers
        return 0.3 if both else gains(compile_blocks=1.4)(levers)

    found = climbed(law, {"bf16": 0.5, **BLOCKS}, SimulatedBench(law))
    assert names(found.plan) == ("bf16", "compile_blocks")


def test_float16_stands_in_for_bfloat16() -> None:
    law = gains(bf16=1.2, fp16=1.4)
    found = climbed(law, {"bf16": 0.5, "fp16": 0.5}, SimulatedBench(law))
    assert names(found.plan) == ("bf16",) and found.spared == ("fp16",)

    def launch_bound(levers: frozenset[str]) -> float | None:
        both = {"fp16", "compile"} <= levers
        return 0.3 if both else gains(fp16=0.9, compile=1.4)(levers)

    found = climbed(launch_bound, {"fp16": 0.5, "compile": 0.3}, SimulatedBench(launch_bound))
    assert names(found.plan) == ("fp16", "compile")


def test_float16_leaves_nothing_for_tf32() -> None:
    law = gains(tf32=1.2, fp16=1.4)
    found = climbed(law, {"tf32": 0.6, "fp16": 0.5}, SimulatedBench(law))
    assert names(found.plan) == ("fp16",)


def test_copies_ahead_are_pinned_by_themselves() -> None:
    law = gains(pin_memory=1.2, device_prefetch=1.3)
    found = climbed(law, {"pin_memory": 0.6, "device_prefetch": 0.5}, SimulatedBench(law))
    assert names(found.plan) == ("device_prefetch",)


class Replacing(SimulatedBench):
    """Beside this optimisation that one has nothing left to do."""

    new, old = "compile", "fused_optimizer"

    def measure(self, plan: Plan, purpose: str, give_up_above: float | None = None) -> Score:
        score = super().measure(plan, purpose, give_up_above)
        if {self.new, self.old} <= set(words(plan)):
            return Score(None, f"{self.old} did nothing.", applied=False, idle=(self.old,))
        return score


def test_what_a_new_one_leaves_nothing_to_do_for_makes_room() -> None:
    bench = Replacing(gains(fused_optimizer=1.2, compile=1.5))
    found = climb(1.0, candidates(fused_optimizer=0.9, compile=0.5), bench, 99)
    assert found.plan == plan_of("compile")
    (last,) = [one for one in found.tried if one.lever == "compile"]
    assert last.kept and last.plan == plan_of("compile")


def test_one_that_does_nothing_itself_does_not() -> None:
    bench = Replacing(gains(fused_optimizer=1.2, compile=1.5))
    bench.new, bench.old = bench.old, bench.new
    found = climb(1.0, candidates(fused_optimizer=0.9, compile=0.5), bench, 99)
    assert found.plan == plan_of("fused_optimizer")
    tried = {one.lever: one.reason for one in found.tried}
    assert tried["compile"] == "compile did nothing."


def test_where_time_is_short_what_compiles_comes_last() -> None:
    offered = candidates(compile=0.5, compile_blocks=0.4, fused_optimizer=0.2, channels_last=0.1)
    bench = SimulatedBench(gains(fused_optimizer=1.2))
    found = climb(1.0, offered, bench, FOR_EVER, quick_first=True)
    first = [tried.lever for tried in found.tried][:3]
    assert first == ["fused_optimizer", "channels_last", "compile"]
    usual = climb(1.0, offered, SimulatedBench(gains(fused_optimizer=1.2)), FOR_EVER)
    assert usual.tried[0].lever == "compile"


def test_what_is_just_too_little_is_told_in_more_digits() -> None:
    law = gains(bf16=1.01996)
    (tried,) = climbed(law, {"bf16": 0.5}, SimulatedBench(law)).tried
    assert tried.reason == "1.01996× is less than the 1.020× that would count"


@pytest.mark.parametrize(("first", "kept"), [(1.0, set()), (2.0, {"bf16", "compile"})])
def test_a_further_change_may_win_less_than_the_first(first: float, kept: set[str]) -> None:
    law = gains(bf16=first, compile=1.015)
    found = climbed(law, {"bf16": 0.5, "compile": 0.4}, SimulatedBench(law))
    assert set(names(found.plan)) == kept


@pytest.mark.parametrize(
    ("together", "chosen"),
    [
        pytest.param(0.5, {"loader_workers", "cache_dataset"}, id="both are needed"),
        pytest.param(0.8, {"cache_dataset"}, id="workers only help until items are kept"),
        pytest.param(0.69, {"cache_dataset"}, id="and hardly do afterwards"),
    ],
)
def test_two_that_speed_up_loading_are_measured_apart(together: float, chosen: set[str]) -> None:
    """Workers come first, and help; keeping the items helps more, on top of them."""
    steps = {
        frozenset({"loader_workers"}): 0.9,
        frozenset({"cache_dataset"}): 0.7,
        frozenset({"loader_workers", "cache_dataset"}): together,
    }
    bench = SimulatedBench(lambda levers: steps.get(levers, 1.0))
    shares = {"loader_workers": 0.9, "cache_dataset": 0.8}

    found = climb(1.0, candidates(**shares), bench, FOR_EVER)

    assert set(names(found.plan)) == chosen
    assert len(found.tried) == 3


def test_one_that_is_worth_little_of_a_slow_step_is_tried_once_the_step_is_fast() -> None:
    """And not before: its trial takes as long as any other."""

    def tried(gain: float) -> tuple[list[str], Climb]:
        law = gains(bf16=gain, compile=2.0, fused_optimizer=1.1)
        offered = candidates(bf16=0.5, compile=0.3)
        small = Candidate("fused_optimizer", ({},), 0.01, worth_from=5.0)
        found = climb(1.0, [small, *offered], SimulatedBench(law), FOR_EVER)
        return [one.lever for one in found.tried], found

    levers, found = tried(gain=3.0)
    assert levers == ["bf16", "compile", "fused_optimizer"]
    assert "fused_optimizer" in names(found.plan)
    levers, found = tried(gain=2.0)
    assert levers == ["bf16", "compile"]
    assert (found.small, found.untried) == (("fused_optimizer",), ())


def test_what_another_has_brought_along_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bf16, "requires", ("compile",))
    offered = [Candidate("bf16", ({},), 0.5), Candidate("compile", MODES, 0.3)]
    found = climb(1.0, offered, SimulatedBench(gains(bf16=2.0, compile=2.0)), FOR_EVER)
    assert [one.lever for one in found.tried] == ["bf16+compile", "compile"]
    assert words(found.tried[1].plan)[-1] == "compile:reduce-overhead"


@pytest.mark.parametrize(("steps", "pays"), [(None, True), (40, True), (4, False)])
def test_what_comes_once_is_to_be_won_back_by_a_training_whose_end_was_seen(
    steps: int | None, pays: bool
) -> None:
    bench = SimulatedBench(gains(cache_dataset=10.0), once={"cache_dataset": 5.0}, steps=steps)
    found = climb(1.0, candidates(cache_dataset=0.9), bench, FOR_EVER)
    assert names(found.plan) == (("cache_dataset",) if pays else ())
    why = "it takes 5.00 s once, and the 4 steps of the whole training do not make up for that"
    assert found.tried[0].reason == ("" if pays else why)


def test_it_is_to_be_won_back_from_what_is_kept_already() -> None:
    """20 s of steps: workers leave 10 of them, and of these a cache would win 6, for 8."""
    law = gains(loader_workers=2.0, cache_dataset=2.5)
    bench = SimulatedBench(law, once={"cache_dataset": 8.0}, steps=20)
    found = climb(1.0, candidates(loader_workers=0.5, cache_dataset=0.4), bench, FOR_EVER)
    assert names(found.plan) == ("loader_workers",)
    alone = climb(1.0, candidates(cache_dataset=0.4), bench, FOR_EVER)
    assert names(alone.plan) == ("cache_dataset",)


def test_what_is_slower_is_called_that_and_not_too_short() -> None:
    bench = SimulatedBench(gains(cache_dataset=0.5), once={"cache_dataset": 5.0}, steps=4)
    found = climb(1.0, candidates(cache_dataset=0.9), bench, FOR_EVER)
    assert found.tried[0].reason.startswith("worse")
