"""What is claimed of a plan, on simulated machines as noisy as real ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.plan import Plan
from hotloop.search.climb import BudgetSpent
from hotloop.search.compare import LEAST_PAIRS
from hotloop.search.duel import FUTILE_AFTER, MOST_PAIRS
from hotloop.search.interactions import names
from hotloop.search.parts import LAST_LOOK
from hotloop.search.proof import prove
from hotloop.search.score import Score
from tests.simulated import SimulatedBench, gains, plan_of

COMPARISONS = 200


def runs(bench: SimulatedBench, *levers: str) -> int:
    return sum(names(plan) == levers for plan, _, _ in bench.measured)


class Failing(SimulatedBench):
    """Works for a while."""

    fails: tuple[str, ...] = ()
    after = 0

    def measure(self, plan: Plan, purpose: str, give_up_above: float | None = None) -> Score:
        score = super().measure(plan, purpose, give_up_above)
        if names(plan) == self.fails and runs(self, *self.fails) > self.after:
            return Score(None, "killed by signal 9")
        return score


@pytest.mark.parametrize("noise", [0.01, 0.10])
@pytest.mark.parametrize("levers", [("bf16",), ("bf16", "compile")])
def test_a_plan_that_does_nothing_is_not_claimed_to_be_faster(
    noise: float, levers: tuple[str, ...]
) -> None:
    proofs = [
        prove(plan_of(*levers), SimulatedBench(gains(), noise, seed)) for seed in range(COMPARISONS)
    ]
    assert sum(proof.comparison.faster for proof in proofs) <= 2


def test_a_clear_gain_is_proven_under_little_noise() -> None:
    proofs = [
        prove(plan_of("bf16"), SimulatedBench(gains(bf16=1.3), 0.02, seed)) for seed in range(50)
    ]
    assert sum(proof.comparison.faster for proof in proofs) >= 48


def test_five_rounds_prove_a_clear_gain_and_the_order_alternates() -> None:
    bench = SimulatedBench(gains(bf16=2.0), 0.01)
    proof = prove(plan_of("bf16"), bench)
    assert proof.comparison.faster
    assert len(proof.comparison.pairs) == LEAST_PAIRS
    assert {purpose for _, purpose, _ in bench.measured} == {"proof"}
    begins = [plan.is_empty for plan, _, _ in bench.measured[::2]]
    assert begins == [True, False, True, False, True]


def test_a_machine_that_slows_down_steadily_favours_nobody() -> None:
    bench = SimulatedBench(gains(), drift=0.01)
    assert prove(plan_of("bf16"), bench).comparison.ratio == pytest.approx(1.0, abs=0.005)


def test_a_slower_plan_is_given_up_after_two_rounds() -> None:
    bench = SimulatedBench(gains(bf16=0.8), 0.01)
    proof = prove(plan_of("bf16"), bench)
    assert not proof.comparison.faster
    assert proof.comparison.reason.startswith("slower")
    assert len(bench.measured) == 2 * FUTILE_AFTER


def test_a_plan_that_gains_too_little_is_given_up_after_five_rounds() -> None:
    bench = SimulatedBench(gains(bf16=1.01), 0.0001)
    proof = prove(plan_of("bf16"), bench)
    assert not proof.comparison.faster
    assert len(bench.measured) == 2 * LEAST_PAIRS


def test_a_promising_plan_gets_three_rounds_more_and_no_others() -> None:
    ends = set()
    for seed in range(40):
        bench = SimulatedBench(gains(bf16=1.15), 0.06, seed)
        faster = prove(plan_of("bf16"), bench).comparison.faster
        ends.add((len(bench.measured) // 2, faster))
    assert ends >= {(LEAST_PAIRS, True), (MOST_PAIRS, True), (MOST_PAIRS, False)}
    assert {count for count, _ in ends} <= {FUTILE_AFTER, LEAST_PAIRS, MOST_PAIRS}


def test_each_optimisation_of_a_plan_is_left_out_until_its_share_is_proven() -> None:
    bench = SimulatedBench(gains(bf16=1.5, compile=1.4), 0.002)
    proof = prove(plan_of("bf16", "compile"), bench)
    assert [(one.lever, one.comparison.faster) for one in proof.contributions] == [
        ("bf16", True),
        ("compile", True),
    ]
    assert proof.contributions[0].comparison.ratio == pytest.approx(1.5, rel=0.02)
    assert proof.removed == ()
    assert runs(bench, "compile") == runs(bench, "bf16") == 1
    assert runs(bench) == LEAST_PAIRS


def test_the_whole_plan_is_proven_before_its_parts_are_looked_at() -> None:
    bench = SimulatedBench(gains(bf16=1.5, compile=1.4), 0.002)
    prove(plan_of("bf16", "compile"), bench)
    first = [names(plan) for plan, _, _ in bench.measured[: 2 * LEAST_PAIRS]]
    assert set(first) == {(), ("bf16", "compile")}


@pytest.mark.parametrize("noise", [0.0, 0.03, 0.1])
def test_parts_are_left_out_five_times_at_the_most(noise: float) -> None:
    for seed in range(20):
        bench = SimulatedBench(gains(bf16=2.5, compile=1.04), noise, seed)
        prove(plan_of("bf16", "compile"), bench)
        assert runs(bench, "bf16") <= LAST_LOOK + MOST_PAIRS  # the second time as what is left


def test_what_helps_stays_on_a_noisy_machine_and_what_does_not_mostly_leaves() -> None:
    law = gains(compile=2.0, bf16=1.2)
    plans = [
        names(prove(plan_of("tf32", "bf16", "compile"), SimulatedBench(law, 0.06, seed)).plan)
        for seed in range(100)
    ]
    assert sum("compile" in plan for plan in plans) == 100
    assert sum("bf16" in plan for plan in plans) >= 98
    assert sum("tf32" in plan for plan in plans) <= 25


def test_a_plan_that_is_proven_when_the_time_is_over_stays_whole() -> None:
    whole = plan_of("tf32", "bf16", "compile")
    for budget in range(2 * LEAST_PAIRS, 40):
        bench = SimulatedBench(gains(bf16=1.5, compile=1.4), 0.002, budget=budget)
        proof = prove(whole, bench)
        assert proof.comparison.faster
        assert proof.plan == whole or names(proof.plan) == ("bf16", "compile")
    assert proof.plan != whole


def test_a_single_optimisation_contributes_what_the_plan_does() -> None:
    proof = prove(plan_of("bf16"), SimulatedBench(gains(bf16=1.5), 0.01))
    assert [one.comparison for one in proof.contributions] == [proof.comparison]


def test_a_passenger_is_removed_and_the_rest_measured_on_fresh_pairs() -> None:
    bench = SimulatedBench(gains(bf16=1.5, compile=1.4), 0.005)
    proof = prove(plan_of("tf32", "bf16", "compile"), bench)
    assert names(proof.plan) == ("bf16", "compile")
    assert [one.lever for one in proof.removed] == ["tf32"]
    assert [one.lever for one in proof.contributions] == ["bf16", "compile"]
    fresh = [plan for plan, _, _ in bench.measured[-2 * LEAST_PAIRS :]]
    assert sum(plan == proof.plan for plan in fresh) == LEAST_PAIRS
    assert sum(plan.is_empty for plan in fresh) == LEAST_PAIRS


def test_one_that_hurts_is_removed_first() -> None:
    bench = SimulatedBench(gains(bf16=1.5, compile=1.4, channels_last=0.9), 0.002)
    proof = prove(plan_of("tf32", "bf16", "channels_last", "compile"), bench)
    assert [one.lever for one in proof.removed] == ["channels_last", "tf32"]
    assert names(proof.plan) == ("bf16", "compile")


def test_of_two_that_do_the_same_work_one_stays() -> None:
    bench = SimulatedBench(lambda levers: 5.0 if levers & {"tf32", "bf16"} else 10.0, 0.005)
    proof = prove(plan_of("tf32", "bf16"), bench)
    assert len(proof.removed) == 1
    assert proof.comparison.ratio == pytest.approx(2.0, rel=0.02)
    assert [one.comparison for one in proof.contributions] == [proof.comparison]


def test_a_removal_that_loses_the_proof_is_undone() -> None:
    bench = SimulatedBench(gains(bf16=1.015, compile=1.015), 0.0001)
    proof = prove(plan_of("bf16", "compile"), bench)
    assert proof.comparison.faster
    assert names(proof.plan) == ("bf16", "compile")
    assert proof.removed == ()


@pytest.mark.parametrize("after", [0, 1, 3])
@pytest.mark.parametrize(("fails", "who"), [(("bf16",), "the plan"), ((), "the job as it is")])
def test_a_crash_in_the_middle_is_a_verdict(after: int, fails: tuple[str, ...], who: str) -> None:
    bench = Failing(gains(bf16=2.0), 0.01)
    bench.fails, bench.after = fails, after
    proof = prove(plan_of("bf16"), bench)
    assert not proof.comparison.faster
    assert proof.comparison.reason == f"{who} failed in the proof: killed by signal 9"
    assert len(proof.comparison.pairs) == after
    assert proof.contributions == proof.removed == ()


def test_a_plan_that_crashes_once_it_is_proven_is_not_claimed() -> None:
    bench = Failing(gains(bf16=2.0, tf32=1.15), 0.02)
    bench.fails, bench.after = ("tf32", "bf16"), LEAST_PAIRS
    proof = prove(plan_of("tf32", "bf16"), bench)
    assert runs(bench, "tf32", "bf16") == LEAST_PAIRS + 1
    assert not proof.comparison.faster


def test_an_optimisation_without_which_the_job_fails_is_no_passenger() -> None:
    bench = Failing(gains(compile=1.5), 0.005)
    bench.fails = ("compile",)
    proof = prove(plan_of("bf16", "compile"), bench)
    assert names(proof.plan) == ("bf16", "compile")
    needed = {one.lever: one for one in proof.contributions}["bf16"]
    assert needed.needed
    assert not needed.comparison.faster
    assert needed.comparison.reason == "without it the job failed: killed by signal 9"
    assert runs(bench, "compile") == 1


def test_the_floor_is_what_the_job_shows_against_itself() -> None:
    quiet, noisy = (
        prove(plan_of("bf16"), SimulatedBench(gains(bf16=3.0), noise)).floor
        for noise in (0.001, 0.1)
    )
    assert 0 < quiet < 0.01 < noisy


def test_a_spent_budget_is_the_callers_to_handle() -> None:
    with pytest.raises(BudgetSpent):
        prove(plan_of("bf16"), SimulatedBench(gains(bf16=2.0), budget=7))


class NowAndThenDisturbed(SimulatedBench):
    """Another program takes the machine from the job as it is, in one of its processes."""

    def measure(self, plan: Plan, purpose: str, give_up_above: float | None = None) -> Score:
        score = super().measure(plan, purpose, give_up_above)
        plain = sum(not names(each) for each, _, _ in self.measured)
        disturbs = not names(plan) and plain == 4
        return replace(score, value=13 * (score.value or 0)) if disturbs else score


def test_a_process_that_was_disturbed_is_made_up_for_by_another_pair() -> None:
    bench = NowAndThenDisturbed(gains(bf16=1.3), 0.02)
    found = prove(plan_of("bf16"), bench).comparison
    assert found.faster and found.ratio == pytest.approx(1.3, rel=0.05)
    assert len(found.pairs) == LEAST_PAIRS and len(found.disturbed) == 1
    assert runs(bench) == LEAST_PAIRS + 1


def test_nothing_is_won_by_it() -> None:
    claims = 0
    for seed in range(200):
        bench = NowAndThenDisturbed(gains(), 0.1, seed=seed)
        claims += prove(plan_of("bf16"), bench).comparison.faster
    assert claims <= 2
