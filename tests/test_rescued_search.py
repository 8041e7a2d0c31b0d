"""A job that runs out of memory as it is, on paper: what makes it run, and what is then claimed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from hotloop import study
from hotloop.errors import DeviceOutOfMemory
from hotloop.evidence import Evidence
from hotloop.search.interactions import names
from hotloop.study import Options
from hotloop.trial.order import Order
from hotloop.trial.result import Failure
from hotloop.trial.trial import State, Trial
from tests.searching import Listener, PaperJob, acting, found, levers, search
from tests.simulated import gains

MEMORY = Options(
    objective="memory", only=("allocator", "chunked_loss", "checkpoint_blocks", "bf16")
)
STARVED = "The GPU's memory was exhausted before its first training step."
ROOM = 10.0


@dataclass
class Tight:
    """A GPU with room for 10, and a job that needs more."""

    needs: float
    saves: dict[str, float]
    smaller: bool = True
    """Whether the script's loaders can be told to build smaller batches."""
    kept: float = 0.0
    """Of what it needs: what autograd keeps, and may lay aside."""
    also: Callable[[Order, Trial], Trial] = lambda order, trial: trial

    def __call__(self, order: Order, trial: Trial) -> Trial:
        trial = self._with_loader(trial)
        chosen = {one.lever for one in order.plan.levers}
        chosen |= {f"{one.lever}:{v}" for one in order.plan.levers for v in one.setting.values()}
        saved = sum(size for name, size in self.saves.items() if name in chosen)
        noise = 1.5 if order.exam is not None and order.exam.noise_bits is not None else 1.0
        if order.exam is not None and order.exam.spare:
            noise = 1.0
        is_aside = order.exam is not None and order.exam.aside
        needs = self.needs - (self.kept if is_aside else saved)
        if needs / order.divisor * noise > ROOM:
            kept = self._beginning(trial.evidence) if trial.evidence else None
            failure = Failure("OutOfMemoryError", "CUDA out of memory", is_device_memory=True)
            trial = replace(trial, state=State.OUT_OF_MEMORY, reason=STARVED, evidence=kept)
            trial = replace(trial, failure=failure)
        return self.also(order, trial)

    def _with_loader(self, trial: Trial) -> Trial:
        if trial.measurement is None or self.smaller:
            return trial
        inventory = replace(trial.measurement.inventory, loaders=[])
        return replace(trial, measurement=replace(trial.measurement, inventory=inventory))

    def _beginning(self, evidence: Evidence) -> Evidence:
        """It came to its first batch, and to no step."""
        given = evidence.structure.given[:1]
        structure = replace(evidence.structure, steps=[], settings=[], given=given)
        return replace(evidence, structure=structure, differences=[], forced=[])


def purposes(paper: PaperJob) -> list[str]:
    return list(dict.fromkeys(paper.purposes))


def test_for_speed_the_next_command_is_named(tmp_path: Path) -> None:
    paper = PaperJob(answer=Tight(12, {}))
    with pytest.raises(DeviceOutOfMemory) as refused:
        search(paper, tmp_path, Options())
    assert "hotloop optimize --objective memory train.py --lr 3e-4" in refused.value.remedy
    assert paper.purposes == ["baseline"]


class TestOnSmallerBatches:
    """The job as it is runs on them, so that there is something to compare with."""

    def test_the_first_plan_that_runs_is_handed_out(self, tmp_path: Path) -> None:
        paper = PaperJob(answer=Tight(12, {"chunked_loss": 3}))
        record = search(paper, tmp_path, MEMORY)
        won = found(record)
        assert won.plan is not None and levers(won.plan) == {"chunked_loss"}
        assert won.plan.at_once
        assert won.rescue is not None
        assert [one.ran for one in won.rescue.tried] == [False, True]
        assert won.rescue.ended == STARVED
        assert won.rescue.divisor == 2
        assert won.equivalence is not None and won.equivalence.same
        assert won.equivalence.against == "the job as it is on batches of 1/2"
        assert won.rescue.cost == pytest.approx(1.0, rel=0.01)
        assert won.verdict == (
            "It runs with chunked_loss, where the job as it is runs out of memory; a step takes "
            "1.00× as long, on smaller batches. The same training over 60 steps, on batches of 1/2."
        )
        assert study.load(tmp_path / "study.json") == record

    def test_everything_in_order_and_on_the_batches_it_needs(self, tmp_path: Path) -> None:
        paper = PaperJob(answer=Tight(12, {"chunked_loss": 3}))
        search(paper, tmp_path, MEMORY)
        smaller = " on 1/2 batches"
        assert purposes(paper) == [
            "baseline",
            "rescue",
            f"reference{smaller}",
            f"yardstick 23{smaller}",
            f"reseeded 1{smaller}",
            f"reseeded 2{smaller}",
            f"candidate{smaller}",
            "screen",
            "soak",
            "cost",
        ]
        for order in paper.orders:
            plain = order.plan.is_empty and order.purpose != "baseline"
            smaller_too = "batches" in order.purpose or order.purpose == "cost"
            assert (order.divisor > 1) == (plain or smaller_too)
            assert order.plan.at_once == (order.purpose != "baseline")

    def test_it_is_handed_out_without_time_to_say_what_it_costs(self, tmp_path: Path) -> None:
        paper = PaperJob(answer=Tight(12, {"chunked_loss": 3}))
        won = found(search(paper, tmp_path, replace(MEMORY, budget=48.0)))
        assert won.plan is not None and won.rescue is not None
        assert won.rescue.cost is None and "as long" not in won.verdict

    def test_batches_are_as_large_as_noise_has_room_for(self, tmp_path: Path) -> None:
        paper = PaperJob(answer=Tight(30, {"chunked_loss": 21}))
        won = found(search(paper, tmp_path, MEMORY))
        assert won.rescue is not None and won.rescue.divisor == 8  # 30 / 4 fits, with noise not

    def test_of_those_that_run_the_fastest(self, tmp_path: Path) -> None:
        """bf16 makes it fit, too, and is faster; then the loss need not be cut any more."""
        law = gains(bf16=1.5, chunked_loss=0.8)
        paper = PaperJob(law, answer=Tight(12, {"chunked_loss": 3, "bf16": 3}))
        record = search(paper, tmp_path, MEMORY)
        won = found(record)
        assert won.rescue is not None and won.rescue.plan is not None
        assert names(won.rescue.plan) == ("chunked_loss",)
        assert won.plan is not None and levers(won.plan) == {"bf16"}
        assert won.proof is not None
        assert won.proof.comparison.ratio == pytest.approx(1.5 / 0.8, rel=0.01)
        assert [one.lever for one in won.proof.removed] == ["chunked_loss"]
        assert won.equivalence is not None and won.equivalence.same
        assert won.verdict.startswith("It runs with bf16, where")

    def test_what_it_needs_stays_in_a_faster_plan(self, tmp_path: Path) -> None:
        paper = PaperJob(gains(bf16=1.5), answer=Tight(12, {"checkpoint_blocks:2": 3}))
        won = found(search(paper, tmp_path, MEMORY))
        assert won.plan is not None and levers(won.plan) == {"bf16", "checkpoint_blocks"}
        assert won.proof is not None
        assert [one.lever for one in won.proof.contributions if one.needed] == ["checkpoint_blocks"]

    def test_another_training_is_not_handed_out(self, tmp_path: Path) -> None:
        paper = PaperJob(changes=frozenset({"chunked_loss"}), answer=Tight(12, {"chunked_loss": 3}))
        won = found(search(paper, tmp_path, MEMORY))
        assert won.plan is None
        assert won.verdict == (
            "No plan is handed out: it runs, but step 1: lr is 0.09 instead of 0.1."
        )

    def test_what_would_make_it_faster_and_train_otherwise_is_excluded(
        self, tmp_path: Path
    ) -> None:
        paper = PaperJob(
            gains(bf16=1.5), changes=frozenset({"bf16"}), answer=Tight(12, {"chunked_loss": 3})
        )
        record = search(paper, tmp_path, MEMORY)
        won = found(record)
        assert won.plan is not None and levers(won.plan) == {"chunked_loss"}
        assert won.equivalence is not None and won.equivalence.same
        refused = {one.lever: one.reason for one in won.refused}
        assert refused["bf16"].startswith("it changes the training")

    def test_a_gain_that_does_not_hold_leaves_what_runs(self, tmp_path: Path) -> None:
        def flattering(order: Order, trial: Trial) -> Trial:
            slow = PaperJob(answer=Tight(12, {"chunked_loss": 3}))
            return slow.launch(order, lambda glimpse: None) if order.purpose == "proof" else trial

        answer = Tight(12, {"chunked_loss": 3}, also=flattering)
        won = found(search(PaperJob(gains(bf16=1.5), answer=answer), tmp_path, MEMORY))
        assert won.plan is not None and levers(won.plan) == {"chunked_loss"}
        assert won.proof is not None and not won.proof.comparison.faster


class TestInHostMemory:
    """Batches drawn by hand; but it runs as it is where what autograd keeps lies elsewhere."""

    def run(self, tmp_path: Path, law: Any = None, **changes: Any) -> Any:
        answer = Tight(12, {"checkpoint_blocks:1.5": 3}, smaller=False, kept=8)
        self.paper = PaperJob(law or gains(), answer=answer, **changes)
        return found(search(self.paper, tmp_path, MEMORY))

    def test_it_is_compared_whole(self, tmp_path: Path) -> None:
        won = self.run(tmp_path)
        assert won.plan is not None and levers(won.plan) == {"checkpoint_blocks"}
        assert won.plan.levers[0].setting == {"every": 1.5}
        assert won.rescue.aside and won.rescue.divisor == 1 and won.rescue.cost is None
        assert won.equivalence is not None and won.equivalence.same
        assert won.equivalence.against == "the job as it is, kept in host memory"
        assert won.verdict == (
            "It runs with checkpoint_blocks, where the job as it is runs out of memory. The same "
            "training over 60 steps."
        )

    def test_the_job_as_it_is_alone_lies_there(self, tmp_path: Path) -> None:
        self.run(tmp_path)
        laid = [(one.plan.is_empty, one.exam.aside) for one in self.paper.orders if one.exam]
        assert len(laid) == 5 and all(is_plain == is_aside for is_plain, is_aside in laid)
        soaked = [levers(one.plan) for one in self.paper.orders if one.soak]
        assert soaked and all(soaked)  # which is about other things, and would be slow

    def test_another_training_is_not_handed_out(self, tmp_path: Path) -> None:
        won = self.run(tmp_path, changes=frozenset({"checkpoint_blocks"}))
        assert won.plan is None
        assert won.verdict.startswith("No plan is handed out: it runs, but step 1: lr is 0.09")

    def test_a_faster_one_is_compared_with_the_job_as_it_is(self, tmp_path: Path) -> None:
        won = self.run(tmp_path, gains(bf16=1.5))
        assert levers(won.plan) == {"bf16", "checkpoint_blocks"}
        assert won.equivalence.against == "the job as it is, kept in host memory"

    def test_where_no_two_runs_can_be_compared_what_runs_is_handed_out(
        self, tmp_path: Path
    ) -> None:
        saves = {"checkpoint_blocks:1.5": 3.0}
        answer = Tight(12, saves, smaller=False, kept=8, also=acting)
        options = replace(MEMORY, only=(*MEMORY.only, "fused_optimizer"))
        paper = PaperJob(gains(fused_optimizer=1.5), answer=answer)
        won = found(search(paper, tmp_path, options))
        assert won.plan is not None and levers(won.plan) == {"checkpoint_blocks"}
        assert won.rescue is not None and not won.rescue.aside and "not shown" in won.verdict

    @pytest.mark.parametrize("purpose", ["reference", "reseeded 2"])
    def test_where_that_takes_too_long_what_runs_is_handed_out(
        self, purpose: str, tmp_path: Path
    ) -> None:
        def slow(order: Order, trial: Trial) -> Trial:
            if order.exam is None or not order.exam.aside or purpose not in order.purpose:
                return trial
            return replace(trial, state=State.TIMED_OUT, seconds=order.limit_seconds)

        saves = {"checkpoint_blocks:1.5": 3.0}
        paper = PaperJob(answer=Tight(12, saves, smaller=False, kept=8, also=slow))
        won = found(search(paper, tmp_path, replace(MEMORY, budget=120.0)))
        laid = [order.exam.aside for order in paper.orders if order.exam]
        assert laid[0] and not laid[-1]
        assert won.plan is not None and won.equivalence is None
        assert "not shown" in won.verdict

    @pytest.mark.parametrize(
        ("budget", "chosen"),
        [(300.0, {"checkpoint_blocks"}), (340.0, {"checkpoint_blocks", "fused_optimizer"})],
    )
    def test_time_is_not_kept_for_an_examination_that_this_is(
        self, budget: float, chosen: set[str], tmp_path: Path
    ) -> None:
        """Each of its runs is slow, and others like these are not to come."""

        def slow(order: Order, trial: Trial) -> Trial:
            is_aside = order.exam is not None and order.exam.aside
            return replace(trial, seconds=30.0) if is_aside else trial

        answer = Tight(12, {"checkpoint_blocks:1.5": 3.0}, smaller=False, kept=8, also=slow)
        paper = PaperJob(gains(fused_optimizer=1.5), answer=answer)
        only = (*MEMORY.only, "fused_optimizer")
        won = found(search(paper, tmp_path, replace(MEMORY, only=only, budget=budget)))
        assert won.rescue is not None and won.rescue.aside
        assert won.equivalence is not None and won.equivalence.same
        assert won.plan is not None and levers(won.plan) >= chosen


class TestWithoutAnythingToCompareWith:
    """Batches drawn by hand: the job as it is never runs."""

    def run(self, tmp_path: Path, law: Any = None, **changes: Any) -> Any:
        answer = Tight(12, {"chunked_loss": 3}, smaller=False, **changes)
        self.paper = PaperJob(law or gains(), answer=answer)
        return found(search(self.paper, tmp_path, MEMORY))

    def test_it_is_handed_out_and_nothing_is_claimed(self, tmp_path: Path) -> None:
        won = self.run(tmp_path)
        assert won.plan is not None and levers(won.plan) == {"chunked_loss"}
        assert won.equivalence is None
        assert won.rescue.divisor == 1 and won.rescue.cost is None
        assert won.rescue.shown == (
            "its beginning, as far as it comes: 1 batch by checksum, 0 steps",
        )
        assert won.verdict == (
            "It runs with chunked_loss, where the job as it is runs out of memory. That it is the "
            "same training is not shown: there is nothing to compare it with."
        )
        assert all(order.divisor == 1 for order in self.paper.orders)

    def test_another_beginning_is_another_training(self, tmp_path: Path) -> None:
        def otherwise(order: Order, trial: Trial) -> Trial:
            if order.purpose != "beginning" or trial.evidence is None:
                return trial
            given = [replace(one, checksum="other") for one in trial.evidence.structure.given]
            structure = replace(trial.evidence.structure, given=given)
            return replace(trial, evidence=replace(trial.evidence, structure=structure))

        won = self.run(tmp_path, also=otherwise)
        assert won.plan is None
        assert won.verdict == (
            "No plan is handed out: it runs, but the beginning of loader 0 holds other data."
        )

    def test_a_faster_one_is_compared_with_the_first_that_ran(self, tmp_path: Path) -> None:
        won = self.run(tmp_path, gains(bf16=1.5))
        assert won.plan is not None and levers(won.plan) == {"bf16", "chunked_loss"}
        assert won.equivalence is not None and won.equivalence.same
        assert won.equivalence.against == "chunked_loss"
        assert "not shown" in won.verdict and "indistinguishable" not in won.verdict
        exams = [order for order in self.paper.orders if order.exam is not None]
        references = [order for order in exams if order.purpose == "reference"]
        assert [levers(order.plan) for order in references] == [{"chunked_loss"}]
        assert all(order.exam.spare and order.exam.at_once for order in exams if order.exam)


class TestNothingHelps:
    def test_is_a_result(self, tmp_path: Path) -> None:
        record = search(PaperJob(answer=Tight(100, {"bf16": 3})), tmp_path, MEMORY)
        won = found(record)
        assert won.plan is None
        tried = len([trial for trial in record.trials if trial.purpose == "rescue"])
        assert won.verdict == (
            f"Nothing was found that makes this job fit into memory: {tried} plans were tried."
        )

    def test_what_the_user_forbids_is_not_tried(self, tmp_path: Path) -> None:
        paper = PaperJob(answer=Tight(12, {"bf16": 3}))
        only = replace(MEMORY, effect="same_math", skip=("allocator",))
        assert found(search(paper, tmp_path, only)).plan is None
        tried = {lever for plan in paper.plans("rescue") for lever in plan}
        assert tried == {"chunked_loss", "checkpoint_blocks"}

    def test_when_the_time_is_over_it_is_said(self, tmp_path: Path) -> None:
        paper = PaperJob(answer=Tight(100, {}))
        won = found(search(paper, tmp_path, replace(MEMORY, budget=12.0)))
        assert won.verdict.startswith("The time granted was over")


def test_a_dry_run_says_what_would_be_tried(tmp_path: Path) -> None:
    paper, listener = PaperJob(answer=Tight(12, {})), Listener()
    record = search(paper, tmp_path, MEMORY, listener=listener, dry_run=True)
    assert paper.purposes == ["baseline"]
    tried = [one.lever for one in found(record).candidates]
    assert tried == ["allocator", "chunked_loss", "checkpoint_blocks", "bf16"]
    assert listener.outlooks and not found(record).verdict


def test_a_job_that_fits_is_made_smaller_as_ever(tmp_path: Path) -> None:
    paper = PaperJob(memory=gains(bf16=1.25))
    won = found(search(paper, tmp_path, MEMORY))
    assert won.rescue is None
    assert won.plan is not None and not won.plan.at_once


def test_it_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    whole = PaperJob(answer=Tight(12, {"chunked_loss": 3}))
    search(whole, tmp_path / "whole", MEMORY)
    stopped = PaperJob(answer=Tight(12, {"chunked_loss": 3}), stops_at=4)
    with pytest.raises(KeyboardInterrupt):
        search(stopped, tmp_path / "part", MEMORY)
    again = PaperJob(answer=Tight(12, {"chunked_loss": 3}))
    earlier = study.load(tmp_path / "part" / "study.json")
    record = search(again, tmp_path / "part", MEMORY, earlier=earlier)
    assert found(record).plan is not None
    assert "rescue" not in again.purposes
    assert len(record.trials) == len(whole.orders)
