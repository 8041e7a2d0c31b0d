"""The search as a whole, on a job that exists on paper alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import hotloop.optimization
from hotloop import study
from hotloop.diagnose.base import Case, Effort, Finding
from hotloop.diagnose.diagnosis import Diagnosis
from hotloop.diagnose.numbers import Numbers
from hotloop.errors import BudgetTooSmall, FailedInTraining
from hotloop.inspection import Inspection
from hotloop.measurement import Measurement
from hotloop.roof import Roof
from hotloop.search.compare import LEAST_PAIRS
from hotloop.search.ladder import rungs
from hotloop.study import NO_TIME, Options, Study
from hotloop.trial.order import Order
from hotloop.trial.result import Failure
from hotloop.trial.trial import State, Trial
from hotloop.workshop.choosing import BLIND
from hotloop.workshop.outlook import TO_PROVE, TO_SOAK
from hotloop.workshop.refusals import NOT_EXAMINED
from tests import builders
from tests.searching import (
    LIMIT,
    SECONDS,
    TWO,
    Listener,
    PaperJob,
    acting,
    crashing,
    found,
    levers,
    reasons,
    search,
    timed_out,
)
from tests.simulated import gains


class TestPlan:
    def test_is_found_proven_examined_soaked_and_handed_out(self, tmp_path: Path) -> None:
        (tmp_path / "train.py").write_text("import torch\n")
        job = builders.job(tmp_path)
        record = search(PaperJob(gains(bf16=1.5, loader_workers=1.2)), tmp_path, job=job)
        won = found(record)
        assert won.plan is not None
        assert levers(won.plan) == {"bf16", "loader_workers"}
        assert won.plan.script == job.source_digest() != ""
        assert (won.plan.torch, won.plan.gpu) == ("2.13.0", builders.GPU)
        assert won.proof is not None and won.proof.comparison.ratio == pytest.approx(1.8, rel=0.01)
        assert won.equivalence is not None and won.equivalence.same
        assert won.soaked is not None and won.soaked.passed
        assert won.verdict == "1.80× faster, and the same training."
        assert won.warnings == ("A neighbour.",)
        assert study.load(tmp_path / "study.json") == record

    def test_goes_through_everything_in_order(self, tmp_path: Path) -> None:
        paper = PaperJob(gains(bf16=1.5))
        search(paper, tmp_path, Options(only=("bf16",)))
        assert list(dict.fromkeys(paper.purposes)) == [
            "baseline",
            "screen",
            "reference",
            "yardstick 7",
            "reseeded 1",
            "reseeded 2",
            "candidate",
            "soak",
            "proof",
        ]
        assert [order.number for order in paper.orders] == list(range(1, len(paper.orders) + 1))
        assert [order.folder.name for order in paper.orders[:2]] == ["trial-1", "trial-2"]

    def test_leaves_no_weights_behind(self, tmp_path: Path) -> None:
        search(PaperJob(gains(bf16=1.5)), tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["study.json"]

    def test_of_exact_and_coarse_optimisations_is_examined_in_parts(self, tmp_path: Path) -> None:
        paper = PaperJob(gains(bf16=1.5, loader_workers=1.2))
        search(paper, tmp_path)
        both = {"bf16", "loader_workers"}
        assert paper.plans("candidate") == [frozenset({"loader_workers"}), frozenset(both)]

    def test_of_least_memory(self, tmp_path: Path) -> None:
        paper = PaperJob(law=gains(loader_workers=2.0), memory=gains(bf16=1.25))
        won = found(search(paper, tmp_path, replace(TWO, objective="memory")))
        assert won.plan is not None and levers(won.plan) == {"bf16"}
        assert won.verdict == "1.25× less memory, and the same training."
        assert all(order.stop.give_up_above is None for order in paper.orders)

    def test_every_rung_of_its_ladder_was_measured(self, tmp_path: Path) -> None:
        """Also where what helped first was a passenger in the end."""

        def law(levers: frozenset[str]) -> float:
            compiled = 0.6 if "compile" in levers else 1.0
            return compiled * (0.5 if "bf16" in levers else 0.7 if "tf32" in levers else 1.0)

        record = search(PaperJob(law), tmp_path, Options(only=("tf32", "bf16", "compile")))
        plan, climb = found(record).plan, found(record).climb
        assert plan is not None and levers(plan) == {"bf16", "compile"}
        timed = [one for one in record.trials if one.purpose in ("screen", "proof", "rung")]
        for rung in rungs(plan, climb):
            assert rung.levers in [trial.plan.levers for trial in timed]

    def test_a_crash_of_one_is_a_result_among_others(self, tmp_path: Path) -> None:
        record = search(PaperJob(crashing("bf16", loader_workers=1.4)), tmp_path)
        plan = found(record).plan
        assert plan is not None and levers(plan) == {"loader_workers"}
        assert reasons(record)["bf16"] == "It crashed."
        (refused,) = [one for one in found(record).refused if one.lever == "bf16"]
        assert refused.tried
        assert refused.cost % SECONDS == 0 < refused.cost


def test_where_no_two_runs_can_be_compared_nothing_more_is_tried(tmp_path: Path) -> None:
    """As where an agent's actions decide what it sees next."""

    paper = PaperJob(gains(fused_optimizer=1.5, compile=1.2), answer=acting)
    record = search(paper, tmp_path, Options(only=("fused_optimizer", "compile")))
    assert found(record).verdict == BLIND and found(record).plan is None
    assert "proof" not in paper.purposes
    assert paper.purposes.index("candidate") == len(paper.purposes) - 1


class TestNothingToWin:
    def test_gives_no_plan_and_says_so_in_good_time(self, tmp_path: Path) -> None:
        record = search(PaperJob(), tmp_path, Options())
        assert found(record).plan is None
        assert found(record).verdict.startswith("Nothing was found that makes this job faster: ")
        assert sum(trial.seconds for trial in record.trials) <= 12 * record.trials[0].seconds
        assert {trial.purpose for trial in record.trials} == {"baseline", "screen"}

    def test_whatever_there_is_no_time_for_is_named(self, tmp_path: Path) -> None:
        def slow(order: Order, trial: Trial) -> Trial:
            return trial if order.purpose == "baseline" else replace(trial, seconds=11 * SECONDS)

        record = search(PaperJob(answer=slow), tmp_path)
        assert [trial.purpose for trial in record.trials] == ["baseline", "screen"]
        assert found(record).verdict.endswith("1 optimisation tried.")
        assert reasons(record)["loader_workers"] == NO_TIME

    def test_a_gain_that_does_not_hold_is_none(self, tmp_path: Path) -> None:
        def flattering(order: Order, trial: Trial) -> Trial:
            if order.purpose != "proof":
                return trial
            return PaperJob().launch(order, lambda glimpse: None)

        record = search(PaperJob(gains(bf16=1.5), answer=flattering), tmp_path)
        assert found(record).plan is None
        assert "The best plan found did not hold" in found(record).verdict
        assert reasons(record)["bf16"].startswith("it was not proven to help: ")

    def test_where_nothing_could_help_nothing_is_run(self, tmp_path: Path) -> None:
        paper = PaperJob(gains(pin_memory=2.0))
        record = search(paper, tmp_path, Options(only=("pin_memory",)))
        assert paper.purposes == ["baseline"]
        assert found(record).verdict.endswith("no optimisation tried.")
        assert "copies to the GPU during 0.0%" in reasons(record)["pin_memory"]


class TestWhatTheUserAllows:
    def test_only_and_skip(self, tmp_path: Path) -> None:
        paper = PaperJob()
        record = search(paper, tmp_path, Options(only=("bf16", "tf32"), skip=("tf32",)))
        assert set(paper.plans("screen")) == {frozenset({"bf16"})}
        assert reasons(record)["compile"] == "not among --only"
        assert reasons(record)["tf32"] == "left out by --skip"

    def test_an_effect(self, tmp_path: Path) -> None:
        paper = PaperJob(gains(bf16=3.0, loader_workers=1.3))
        won = found(search(paper, tmp_path, replace(TWO, effect="same_math")))
        assert won.plan is not None and levers(won.plan) == {"loader_workers"}
        assert frozenset({"bf16"}) not in paper.plans("screen")

    def test_steps_and_time_of_a_trial(self, tmp_path: Path) -> None:
        paper = PaperJob(gains(bf16=1.5))
        search(paper, tmp_path, replace(TWO, steps=33))
        timed = [order for order in paper.orders if order.purpose in ("baseline", "screen")]
        assert {order.stop.steps for order in timed} == {33}
        assert {order.limit_seconds for order in paper.orders} == {LIMIT}


class TestOtherTraining:
    def test_is_excluded_and_the_search_goes_on_without(self, tmp_path: Path) -> None:
        law = gains(bf16=1.5, loader_workers=1.3)
        record = search(PaperJob(law, changes=frozenset({"bf16"})), tmp_path)
        won = found(record)
        assert won.plan is not None and levers(won.plan) == {"loader_workers"}
        assert won.equivalence is not None and won.equivalence.same
        assert reasons(record)["bf16"] == (
            "it changes the training: step 1: lr is 0.09 instead of 0.1"
        )

    def test_is_excluded_however_long_it_took_to_find_out(self, tmp_path: Path) -> None:
        """What was spent on a plan that trained otherwise does not use up the patience."""

        def slow(order: Order, trial: Trial) -> Trial:
            return replace(trial, seconds=20 * SECONDS) if order.exam else trial

        law = gains(bf16=1.5, loader_workers=1.3)
        paper = PaperJob(law, changes=frozenset({"bf16"}), answer=slow)
        plan = found(search(paper, tmp_path)).plan
        assert plan is not None and levers(plan) == {"loader_workers"}

    def test_of_every_optimisation_leaves_no_plan(self, tmp_path: Path) -> None:
        both = frozenset({"bf16", "loader_workers"})
        record = search(PaperJob(gains(bf16=1.5, loader_workers=1.3), changes=both), tmp_path)
        assert found(record).plan is None
        assert found(record).verdict.startswith("Nothing that makes this job faster was shown")
        assert all(reasons(record)[lever].startswith("it changes") for lever in both)

    def test_of_a_combination_alone_costs_the_last_one(self, tmp_path: Path) -> None:
        def together(order: Order, trial: Trial) -> Trial:
            if order.exam is None or len(order.plan.levers) < 2:
                return trial
            return replace(trial, evidence=None, reason="It hung", state=State.CRASHED)

        record = search(PaperJob(gains(bf16=1.5, loader_workers=1.3), answer=together), tmp_path)
        plan = found(record).plan
        assert plan is not None and levers(plan) == {"loader_workers"}
        assert "could not be examined: It hung" in reasons(record)["bf16"]

    def test_nothing_that_was_screened_is_screened_again(self, tmp_path: Path) -> None:
        law = gains(bf16=1.5, loader_workers=1.3)
        paper = PaperJob(law, changes=frozenset({"bf16"}))
        search(paper, tmp_path)
        screened = [repr(one.plan) for one in paper.orders if one.purpose == "screen"]
        assert len(screened) == len(set(screened))


class TestPassenger:
    @staticmethod
    def flattered(order: Order, trial: Trial) -> Trial:
        """While screened, and only then, workers seem to help."""
        if order.purpose != "screen":
            return trial
        return PaperJob(gains(bf16=1.5, loader_workers=1.2)).launch(order, lambda glimpse: None)

    def test_is_removed_and_the_shorter_plan_examined_again(self, tmp_path: Path) -> None:
        paper = PaperJob(gains(bf16=1.5), answer=self.flattered)
        record = search(paper, tmp_path)
        plan = found(record).plan
        assert plan is not None and levers(plan) == {"bf16"}
        assert reasons(record)["loader_workers"].startswith("it was not shown to add to the plan: ")
        assert paper.plans("candidate")[-1] == {"bf16"}
        soaked = [one for one in paper.plans("soak") if one]
        assert soaked == [{"bf16", "loader_workers"}, {"bf16"}]
        assert paper.purposes.index("proof") < len(paper.purposes) - 1 - (
            paper.purposes[::-1].index("candidate")
        )

    def test_without_which_the_training_is_another_leaves_no_plan(self, tmp_path: Path) -> None:
        def alone_another(order: Order, trial: Trial) -> Trial:
            if order.exam is not None and levers(order.plan) == {"bf16"}:
                return replace(trial, evidence=None, reason="It hung", state=State.CRASHED)
            return self.flattered(order, trial)

        record = search(PaperJob(gains(bf16=1.5), answer=alone_another), tmp_path)
        assert found(record).plan is None
        assert found(record).verdict.startswith("No plan is handed out: it could not be examined")


class TestSoak:
    WHY = "under the plan: the state cannot be loaded"

    def test_a_plan_that_does_not_survive_it_is_not_handed_out(self, tmp_path: Path) -> None:
        paper = PaperJob(gains(bf16=1.5), breaks=frozenset({"bf16"}))
        record = search(paper, tmp_path)
        assert found(record).plan is None
        assert found(record).verdict == (
            "Nothing was found that makes this job faster: 2 optimisations tried. "
            f"bf16 helped, but does not survive a long training: {self.WHY}."
        )
        assert "proof" not in paper.purposes
        assert reasons(record)["bf16"].endswith(self.WHY)

    def test_what_is_to_blame_leaves_and_the_rest_is_proven(self, tmp_path: Path) -> None:
        law = gains(bf16=1.5, loader_workers=1.2, fused_optimizer=1.3)
        paper = PaperJob(law, breaks=frozenset({"loader_workers"}))
        only = Options(only=("bf16", "loader_workers", "fused_optimizer"))
        record = search(paper, tmp_path, only)
        plan = found(record).plan
        assert plan is not None and levers(plan) == {"bf16", "fused_optimizer"}
        assert reasons(record)["loader_workers"] == (
            f"it helped, but does not survive a long training: {self.WHY}"
        )
        soaked = found(record).soaked
        assert soaked is not None and soaked.passed

    def test_of_two_that_break_it_only_together_the_later_one_leaves(self, tmp_path: Path) -> None:
        def together(order: Order, trial: Trial) -> Trial:
            if order.soak is None or not {"bf16", "fused_optimizer"} <= levers(order.plan):
                return trial
            return replace(trial, state=State.CRASHED, reason="It crashed.", measurement=None)

        paper = PaperJob(gains(bf16=1.5, fused_optimizer=1.3), answer=together)
        record = search(paper, tmp_path, Options(only=("bf16", "fused_optimizer")))
        plan = found(record).plan
        assert plan is not None and levers(plan) == {"bf16"}
        assert reasons(record)["fused_optimizer"].endswith("under the plan: it crashed")

    def test_a_job_that_does_not_bear_it_is_not_to_blame_on_a_plan(self, tmp_path: Path) -> None:
        def fragile(order: Order, trial: Trial) -> Trial:
            broken = order.soak is not None
            return replace(trial, state=State.CRASHED, reason="It crashed.") if broken else trial

        record = search(PaperJob(gains(bf16=1.5), answer=fragile), tmp_path)
        assert found(record).plan is None
        assert found(record).verdict == (
            "No plan is handed out: the plain job does not bear a soak: it crashed."
        )


def test_a_job_that_fails_as_it_is_is_its_own_failure(tmp_path: Path) -> None:
    def fails(order: Order, trial: Trial) -> Trial:
        return replace(trial, state=State.CRASHED, failure=Failure("ValueError", "no"))

    paper = PaperJob(answer=fails)
    with pytest.raises(FailedInTraining):
        search(paper, tmp_path)
    assert [trial.state for trial in study.load(tmp_path / "study.json").trials] == [State.CRASHED]
    again = search(PaperJob(), tmp_path, earlier=study.load(tmp_path / "study.json"))
    assert again.trials[0].state is State.COMPLETE


def test_a_dry_run_measures_once_and_says_what_would_follow(tmp_path: Path) -> None:
    paper, listener = PaperJob(gains(bf16=1.5)), Listener()
    record = search(paper, tmp_path, listener=listener, dry_run=True)
    assert paper.purposes == ["baseline"]
    assert {one.lever for one in found(record).candidates} == {"bf16", "loader_workers"}
    (outlook,) = listener.outlooks
    assert outlook.runs[0] == 4  # as it is, bf16, and workers in two settings
    assert outlook.seconds == tuple(runs * SECONDS for runs in outlook.runs)
    gone_on = PaperJob(gains(bf16=1.5))
    search(gone_on, tmp_path, earlier=record)
    assert len(gone_on.plans("baseline")) == 0


class TestBudget:
    def test_that_does_not_do_for_the_baseline(self, tmp_path: Path) -> None:
        paper = PaperJob(answer=timed_out)
        with pytest.raises(BudgetTooSmall, match="within 1 seconds"):
            search(paper, tmp_path, replace(TWO, budget=1.0))
        (order,) = paper.orders
        assert order.limit_seconds == pytest.approx(1.0, abs=0.5)

    def test_that_was_too_small_can_be_made_larger(self, tmp_path: Path) -> None:
        with pytest.raises(BudgetTooSmall):
            search(PaperJob(answer=timed_out), tmp_path, replace(TWO, budget=1.0))
        earlier = study.load(tmp_path / "study.json")
        record = search(PaperJob(gains(bf16=1.5)), tmp_path, earlier=earlier)
        assert found(record).plan is not None
        assert record.trials[0].state is State.COMPLETE

    def test_that_ends_before_a_proof_gives_a_verdict_and_no_plan(self, tmp_path: Path) -> None:
        budget = 21 * SECONDS
        record = search(PaperJob(gains(bf16=1.5)), tmp_path, replace(TWO, budget=budget))
        assert found(record).plan is None
        assert found(record).verdict.startswith("The time granted was over")
        assert sum(trial.seconds for trial in record.trials) <= budget
        assert record.trials[-1].purpose == "proof"  # of which --resume makes use
        assert not (tmp_path / "reference").exists()

    def test_is_not_kept_for_a_proof_of_nothing(self, tmp_path: Path) -> None:
        """What helps comes late: with time for a proof kept back it would not have been tried."""
        paper = PaperJob(gains(fused_optimizer=1.5))
        record = search(paper, tmp_path, Options(skip=("model_graph",), budget=12 * SECONDS))
        assert record.trials[-1].purpose != "screen"
        screened = [levers(trial.plan) for trial in record.trials if trial.purpose == "screen"]
        assert screened[-1] == {"fused_optimizer"}
        assert found(record).verdict.startswith("The time granted was over")

    def test_is_not_spent_twice_on_what_it_cuts(self, tmp_path: Path) -> None:
        def slow(order: Order, trial: Trial) -> Trial:
            limit = order.limit_seconds
            if order.purpose != "screen" or levers(order.plan) != {"bf16"} or limit > 60:
                return trial
            return replace(trial, state=State.TIMED_OUT, seconds=limit, measurement=None)

        paper = PaperJob(gains(fused_optimizer=1.5), answer=slow)
        only = Options(only=("bf16", "fused_optimizer"), budget=25 * SECONDS)
        record = search(paper, tmp_path, only)
        assert paper.plans("screen")[:2] == [{"bf16"}, {"fused_optimizer"}]
        assert reasons(record)["bf16"].startswith("The budget left it")

    @pytest.mark.parametrize("gain", [2.0, 1.0])
    def test_goes_to_what_was_cut_where_nothing_else_helps(
        self, tmp_path: Path, gain: float
    ) -> None:
        """Better known to help and not proven than not known, with most of the time unspent."""
        needs = 12 * SECONDS

        def slow(order: Order, trial: Trial) -> Trial:
            if order.purpose != "screen" or "bf16" not in levers(order.plan):
                return trial
            seconds = min(needs, order.limit_seconds)
            if seconds == needs:
                return replace(trial, seconds=seconds)
            return replace(trial, state=State.TIMED_OUT, seconds=seconds, measurement=None)

        paper = PaperJob(gains(bf16=gain), answer=slow)
        options = Options(only=("bf16", "fused_optimizer"), budget=28 * SECONDS)
        record = search(paper, tmp_path, options)
        ends = [one.state for one in record.trials if levers(one.plan) == {"bf16"}]
        assert ends[:2] == [State.TIMED_OUT, State.COMPLETE]
        assert reasons(record)["fused_optimizer"].startswith("1.001× is less")
        climbed = found(record).climb
        assert climbed is not None and not climbed.untried
        if gain > 1:
            assert levers(climbed.plan) == {"bf16"}
            assert found(record).verdict.startswith("The time granted was over")
        else:
            assert "×" in reasons(record)["bf16"]  # not that its time did not do

    def test_that_was_too_short_for_all_of_them_is_no_verdict_on_the_rest(
        self, tmp_path: Path
    ) -> None:
        record = search(PaperJob(), tmp_path, Options(budget=8 * SECONDS))
        climbed = found(record).climb
        assert climbed is not None and climbed.untried
        assert found(record).verdict.endswith(
            f"For {len(climbed.untried)} more the time was too short: a larger --budget tries them."
        )

    def test_that_ends_while_parts_are_looked_at_gives_the_whole_plan(self, tmp_path: Path) -> None:
        paper = PaperJob(gains(bf16=1.5, loader_workers=1.2))
        unhurried = search(paper, tmp_path / "unhurried", TWO)
        proofs = [trial for trial in unhurried.trials if trial.purpose == "proof"]
        after = [trial for trial in unhurried.trials if trial.purpose == "rung"]
        enough = len(unhurried.trials) - len(proofs) - len(after) + 2 * LEAST_PAIRS
        record = search(paper, tmp_path, replace(TWO, budget=enough * SECONDS))
        won = found(record)
        assert won.plan is not None and levers(won.plan) == {"bf16", "loader_workers"}
        assert won.proof is not None and won.proof.contributions == ()
        assert won.soaked is not None and won.soaked.passed

    def test_leaves_enough_to_prove_what_was_found(self, tmp_path: Path) -> None:
        """Without keeping any back, the climb would use up what the proof needs."""
        budget = 28 * SECONDS
        record = search(PaperJob(gains(bf16=1.5)), tmp_path, Options(budget=budget))
        assert found(record).plan is not None
        assert sum(trial.seconds for trial in record.trials) <= budget
        screened = [trial for trial in record.trials if trial.purpose == "screen"]
        unhurried = search(PaperJob(gains(bf16=1.5)), tmp_path, Options())
        assert len(screened) < sum(trial.purpose == "screen" for trial in unhurried.trials)

    @staticmethod
    def thorough(order: Order, trial: Trial) -> Trial:
        """What is examined takes long."""
        if order.exam is None:
            return trial
        slow = 3 * SECONDS
        is_cut = order.limit_seconds < slow
        return timed_out(order, trial) if is_cut else replace(trial, seconds=slow)

    def short(self, paper: PaperJob, folder: Path, options: Options, examined: int) -> Study:
        """Time for the search, for so many examined runs, and for a proof."""
        unhurried = search(paper, folder / "unhurried", options)
        searching = sum(trial.purpose in ("baseline", "screen") for trial in unhurried.trials)
        budget = (searching + 3 * examined + TO_PROVE + TO_SOAK + 1) * SECONDS
        record = search(paper, folder, replace(options, budget=budget))
        assert sum(trial.seconds for trial in record.trials) <= budget
        return record

    def test_is_not_spent_on_examining_a_large_plan(self, tmp_path: Path) -> None:
        """Of what rounds coarser the training would be compared after that of the rest."""
        paper = PaperJob(gains(bf16=1.5, loader_workers=1.2), answer=self.thorough)
        record = self.short(paper, tmp_path, TWO, examined=6)
        won = found(record)
        assert won.plan is not None and levers(won.plan) == {"loader_workers"}
        assert won.proof is not None and won.proof.comparison.faster
        assert won.equivalence is not None and won.equivalence.same
        assert reasons(record)["bf16"] == NOT_EXAMINED
        whole = self.short(paper, tmp_path / "whole", TWO, examined=7)
        plan = found(whole).plan
        assert plan is not None and levers(plan) == {"loader_workers", "bf16"}

    def test_nor_on_finding_out_what_changes_the_training(self, tmp_path: Path) -> None:
        law = gains(loader_workers=1.4, fused_optimizer=1.3, compile=1.2)
        changing = frozenset({"compile"})
        paper = PaperJob(law, changes=changing, answer=self.thorough)
        only = Options(only=("loader_workers", "fused_optimizer", "compile"))
        # The plan, and the first of its optimisations by itself: for the others there is no time.
        record = self.short(paper, tmp_path, only, examined=6)
        plan = found(record).plan
        assert plan is not None and levers(plan) == {"loader_workers"}
        assert reasons(record)["fused_optimizer"] == reasons(record)["compile"] == NOT_EXAMINED

    def test_is_the_most_that_a_single_trial_may_take(self, tmp_path: Path) -> None:
        paper = PaperJob(gains(bf16=1.5))
        search(paper, tmp_path, replace(TWO, budget=12 * SECONDS))
        left = [12 * SECONDS - SECONDS * before for before in range(len(paper.orders))]
        assert all(
            order.limit_seconds <= most for order, most in zip(paper.orders, left, strict=True)
        )


class TestLookingIntoIt:
    OPTIONS = Options(only=("bf16", "loader_workers", "fused_optimizer"), look=True)

    @staticmethod
    def looked(order: Order, trial: Trial) -> Trial:
        """The operators of a job that spends its time on many small updates."""
        if order.look is None:
            return trial
        return replace(trial, inspection=Inspection(steps=4))

    def test_comes_after_the_baseline_and_once(self, tmp_path: Path) -> None:
        paper = PaperJob(gains(bf16=1.5), answer=self.looked)
        record = search(paper, tmp_path, self.OPTIONS)
        assert paper.purposes[:2] == ["baseline", "look"]
        assert paper.purposes.count("look") == 1
        assert record.diagnosis is not None and record.diagnosis.verdict
        assert study.load(tmp_path / "study.json") == record

    def test_what_a_finding_speaks_for_is_tried_first(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        slow = Finding(
            "optimizer_bound",
            "It is slow",
            0.3,
            "Fuse it.",
            Effort.SETTING,
            levers=("fused_optimizer",),
        )
        found_so = replace(diagnosis_of_nothing(), findings=(slow,))
        monkeypatch.setattr(hotloop.optimization, "diagnose", lambda case: found_so)
        paper = PaperJob(gains(bf16=1.5), answer=self.looked)
        record = search(paper, tmp_path, self.OPTIONS)
        assert paper.plans("screen")[0] == {"fused_optimizer"}
        assert next((one.lever, one.predicted) for one in found(record).candidates) == (
            "fused_optimizer",
            0.3,
        )

    def test_a_job_that_was_slowed_down_is_not_diagnosed_by_that(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nor compared with it: the job as it is runs once more."""
        steps: list[float] = []

        def diagnosed(case: Case) -> Diagnosis:
            steps.append(case.figures.step.mean)
            return diagnosis_of_nothing()

        def slow_at_first(order: Order, trial: Trial) -> Trial:
            if order.number > 1 or trial.measurement is None:
                return self.looked(order, trial)
            events = trial.measurement.events
            slow = replace(events, time_ns=[5 * at for at in events.time_ns])
            return replace(trial, measurement=replace(trial.measurement, events=slow))

        monkeypatch.setattr(hotloop.optimization, "diagnose", diagnosed)
        paper = PaperJob(gains(), answer=slow_at_first)
        record = search(paper, tmp_path, self.OPTIONS)
        assert paper.purposes[:3] == ["baseline", "look", "baseline"]
        assert steps == [pytest.approx(0.020, rel=0.01)]
        assert found(record).plan is None

    def test_is_left_out_where_there_is_no_time_for_it(self, tmp_path: Path) -> None:
        paper = PaperJob(gains(bf16=1.5), answer=self.looked)
        record = search(paper, tmp_path, replace(self.OPTIONS, budget=10 * SECONDS))
        assert "look" not in paper.purposes
        assert record.diagnosis is None

    def test_one_that_the_budget_cuts_takes_nothing_from_the_search(self, tmp_path: Path) -> None:
        def cut(order: Order, trial: Trial) -> Trial:
            if order.look is None:
                return trial
            return replace(trial, state=State.TIMED_OUT, seconds=12 * SECONDS, measurement=None)

        paper = PaperJob(gains(bf16=1.5), answer=cut)
        record = search(paper, tmp_path, replace(self.OPTIONS, budget=60 * SECONDS))
        assert record.diagnosis is None and found(record).plan is not None

    def test_one_that_fails_takes_nothing_from_the_search(self, tmp_path: Path) -> None:
        def failing(order: Order, trial: Trial) -> Trial:
            crashed = replace(trial, state=State.CRASHED, reason="No.", measurement=None)
            return crashed if order.look is not None else trial

        paper = PaperJob(gains(bf16=1.5), answer=failing)
        plan = found(search(paper, tmp_path, self.OPTIONS)).plan
        assert plan is not None and levers(plan) == {"bf16"}

    def test_the_roof_is_asked_for_the_job_that_was_measured(self, tmp_path: Path) -> None:
        asked: list[str] = []

        def roof(measurement: Measurement) -> Roof:
            asked.append(measurement.software.device)
            return Roof(threads=2)

        paper = PaperJob(gains(bf16=1.5), answer=self.looked)
        record = search(paper, tmp_path, self.OPTIONS, roof=roof)
        assert asked == [builders.GPU]
        assert record.roof == Roof(threads=2)


def diagnosis_of_nothing() -> Diagnosis:
    return Diagnosis("Nothing stands out.", (), (), Numbers())
