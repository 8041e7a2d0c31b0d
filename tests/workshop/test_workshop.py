from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop import study
from hotloop.figures import figures
from hotloop.inspection import Inspection
from hotloop.levers.base import Receipt
from hotloop.measurement import Memory
from hotloop.plan import Plan
from hotloop.search.climb import BudgetSpent
from hotloop.search.score import Score
from hotloop.study import Found, Options
from hotloop.trial.company import Company
from hotloop.trial.fake import FakeLauncher
from hotloop.trial.spec import Exam, StopRule
from hotloop.trial.trial import State, Trial
from hotloop.workshop import workshop
from hotloop.workshop.granted import Granted
from hotloop.workshop.lengths import FEWEST, LEAST, MOST, steps_for
from hotloop.workshop.outlook import Later
from hotloop.workshop.scores import score_of
from hotloop.workshop.weights import WeightsGone
from hotloop.workshop.workshop import Workshop
from tests import builders
from tests.searching import Listener
from tests.simulated import plan_of

FREE = Granted(limit=600.0, budget=None, steps=None)
STOP = StopRule(steps=5)


def shop(
    folder: Path,
    *trials: Trial,
    granted: Granted = FREE,
    earlier: tuple[Trial, ...] = (),
    options: Options | None = None,
) -> tuple[Workshop, FakeLauncher]:
    job, launcher = builders.job(), FakeLauncher(trials)
    record = study.begin("optimize", job, builders.machine(), Found(options or Options()))
    return Workshop(job, record, granted, folder, launcher, Listener(), earlier), launcher


def took(seconds: float, **changes: Any) -> Trial:
    return builders.trial(seconds=seconds, **changes)


def exam(folder: Path, **changes: Any) -> Exam:
    return replace(Exam(str(folder / "reference"), False, 40, (24,)), **changes)


def test_a_trial_is_recorded_and_saved_before_anyone_is_told(tmp_path: Path) -> None:
    here, launcher = shop(tmp_path, took(3.0))
    trial = here.run(plan_of("bf16"), "screen", STOP)
    assert here.record.trials == (trial,)
    assert study.load(tmp_path / "study.json") == here.record
    (order,) = launcher.orders
    assert (order.number, order.purpose, order.limit_seconds) == (1, "screen", 600.0)
    assert here.spent == 3.0


def test_an_interrupted_trial_is_not_recorded(tmp_path: Path) -> None:
    here, _ = shop(tmp_path, took(3.0, state=State.INTERRUPTED))
    with pytest.raises(KeyboardInterrupt):
        here.run(Plan(), "proof", STOP)
    assert here.record.trials == ()


ALONE = Company(others=0.05, stolen=0.0, idle=0.1)
CROWDED = Company(others=0.4, stolen=0.0, idle=0.0)


def screened(folder: Path, usual: Company | None, *others: Company | None) -> int:
    """How many processes one plan was measured in."""
    made = [took(3.0, company=usual), *(took(3.0, company=company) for company in others)]
    here, _ = shop(folder, *made)
    here.baseline()
    here.measure(plan_of("bf16"), "screen")
    return len(here.record.trials) - 1


def test_a_plan_that_met_a_crowd_is_screened_again(tmp_path: Path) -> None:
    assert screened(tmp_path, ALONE, CROWDED, ALONE) == 2
    assert screened(tmp_path, ALONE, CROWDED, CROWDED) == 2
    assert screened(tmp_path, ALONE, ALONE) == 1


def test_one_beside_the_same_crowd_as_the_job_is_not(tmp_path: Path) -> None:
    assert screened(tmp_path, CROWDED, CROWDED) == 1
    assert screened(tmp_path, None, CROWDED) == 1
    assert screened(tmp_path, ALONE, None) == 1
    assert screened(tmp_path, ALONE, replace(CROWDED, idle=0.5)) == 1  # cores enough for both


def runs(folder: Path, *crowds: Company) -> str:
    """Whose turn it was: five plans by their initials. `crowds`: beside whom, in that order."""
    here, _ = shop(folder, took(3.0, company=ALONE), *(took(3.0, company=one) for one in crowds))
    here.baseline()
    for lever in ("affinity", "bf16", "compile", "fp16", "tf32"):
        here.measure(plan_of(lever), "screen")
    return "".join(trial.plan.levers[0].lever[0] for trial in here.record.trials[1:])


def test_others_who_have_come_to_stay_are_put_up_with(tmp_path: Path) -> None:
    assert runs(tmp_path, *[CROWDED] * 6) == "aabcft"


def test_others_who_come_and_go_all_the_time_are_too(tmp_path: Path) -> None:
    assert runs(tmp_path, *[CROWDED, ALONE] * 4) == "aabbccft"


def test_what_a_compiler_died_of_once_is_tried_again(tmp_path: Path) -> None:
    died = took(3.0, state=State.CRASHED, measurement=None, signal="SIGSEGV", reason="killed")
    here, _ = shop(tmp_path, died, took(3.0))
    assert here.measure(plan_of("compile"), "screen").value is not None
    assert [trial.state for trial in here.record.trials] == [State.CRASHED, State.COMPLETE]


def test_what_dies_twice_has_failed(tmp_path: Path) -> None:
    died = took(3.0, state=State.CRASHED, measurement=None, signal="SIGSEGV", reason="killed")
    here, _ = shop(tmp_path, died, died)
    assert here.measure(plan_of("compile"), "screen").value is None
    assert len(here.record.trials) == 2


def test_an_instruction_that_the_processor_lacks_it_lacks_again(tmp_path: Path) -> None:
    died = took(3.0, state=State.CRASHED, measurement=None, signal="SIGILL", reason="killed")
    here, _ = shop(tmp_path, died)
    assert here.measure(plan_of("bf16"), "screen").value is None


def test_a_folder_that_a_killed_trial_left_is_not_used_again(tmp_path: Path) -> None:
    here, launcher = shop(tmp_path, took(3.0))
    (tmp_path / "trial-1").mkdir()
    (tmp_path / "trial-1-2").mkdir()
    here.run(Plan(), "proof", STOP)
    assert launcher.orders[0].folder == tmp_path / "trial-1-3"


class TestSteps:
    @pytest.mark.parametrize(
        ("seconds_a_step", "steps"),
        [(0.0001, MOST), (0.03, 100), (0.5, LEAST), (4.0, 10), (60.0, FEWEST)],
    )
    def test_are_enough_and_not_too_many(self, seconds_a_step: float, steps: int) -> None:
        assert steps_for(seconds_a_step) == steps

    def test_are_the_same_in_every_trial_after_the_first(self, tmp_path: Path) -> None:
        here, launcher = shop(tmp_path, *[took(3.0)] * 3)
        found = figures(builders.measurement())
        assert found is not None
        here.baseline()
        here.measure_by(found)
        here.measure(plan_of("bf16"), "screen", give_up_above=0.5)
        here.measure(plan_of("bf16"), "proof")
        first, *others = [order.stop for order in launcher.orders]
        assert first.steps is None
        assert [stop.steps for stop in others] == [steps_for(found.step.p50)] * 2
        assert [stop.give_up_above for stop in others] == [0.5, None]

    def test_of_an_examination_are_its_own(self, tmp_path: Path) -> None:
        here, launcher = shop(tmp_path, took(3.0))
        (tmp_path / "reference").mkdir()
        here.examined(Plan(), exam(tmp_path), "candidate")
        stop = launcher.orders[0].stop
        assert (stop.warm_up, stop.steps) == (0, 3 * 40)


class TestScore:
    def test_is_the_mean_step(self) -> None:
        assert score_of(took(3.0), "speed").value == pytest.approx(0.02)

    def test_knows_what_comes_once_in_a_training_whose_end_was_seen(self) -> None:
        receipts = (Receipt("cache_dataset", True, once_seconds=2.0), Receipt("bf16", True))
        score = score_of(took(3.0, receipts=receipts), "speed", steps=20)
        assert (score.once, score.steps) == (2.0, 20)
        assert score.whole == pytest.approx(0.02 + 0.1)
        assert score_of(took(3.0, receipts=receipts), "speed").whole == pytest.approx(0.02)

    def test_of_memory_is_the_devices_peak_or_else_the_hosts(self) -> None:
        memory = Memory(host_peak=7, device_peak_allocated=3)
        on_gpu = took(3.0, measurement=builders.measurement(memory=memory))
        assert score_of(on_gpu, "memory") == Score(3.0)
        assert score_of(took(3.0), "memory") == Score(512.0 * 2**20)

    def test_is_missing_where_memory_is_not_known(self) -> None:
        unknown = took(3.0, measurement=builders.measurement(memory=Memory()))
        assert score_of(unknown, "memory").value is None
        assert score_of(unknown, "memory").reason

    def test_of_a_failure_is_its_reason(self) -> None:
        crashed = took(3.0, state=State.CRASHED, reason="It crashed.", measurement=None)
        assert score_of(crashed, "speed") == Score(None, "It crashed.")
        idle = replace(crashed, state=State.NOT_APPLIED, reason="No effect.")
        assert score_of(idle, "speed") == Score(None, "No effect.", applied=False)

    def test_of_too_few_steps_is_none(self) -> None:
        few = took(3.0, measurement=builders.measurement(builders.training(1).events))
        assert score_of(few, "speed").value is None

    def test_of_a_plan_that_was_screened_is_not_asked_for_again(self, tmp_path: Path) -> None:
        here, launcher = shop(tmp_path, *[took(3.0)] * 2)
        first = here.measure(plan_of("bf16"), "screen")
        assert here.measure(plan_of("bf16"), "screen") == first
        assert len(launcher.orders) == 1
        here.measure(plan_of("bf16"), "proof")
        assert len(launcher.orders) == 2


class TestBudget:
    BUDGET = Granted(limit=8.0, budget=20.0, steps=None)

    def test_is_spent_when_another_trial_would_not_fit(self, tmp_path: Path) -> None:
        here, launcher = shop(tmp_path, *[took(7.0)] * 3, granted=self.BUDGET)
        here.baseline()
        here.run(plan_of("bf16"), "screen", STOP)
        with pytest.raises(BudgetSpent):
            here.run(plan_of("tf32"), "screen", STOP)
        assert [order.limit_seconds for order in launcher.orders] == [8.0, 8.0]

    def test_limits_a_trial_to_what_is_left(self, tmp_path: Path) -> None:
        here, launcher = shop(tmp_path, took(3.0), took(10.0), took(4.0), granted=self.BUDGET)
        for lever in ("bf16", "tf32", "compile"):
            here.run(plan_of(lever), "screen", STOP)
        assert [order.limit_seconds for order in launcher.orders] == [8.0, 8.0, 7.0]

    def test_is_kept_back_in_part(self, tmp_path: Path) -> None:
        here, _ = shop(tmp_path, *[took(5.0)] * 3, granted=self.BUDGET)
        here.baseline()
        here.keep_back(Later(3))
        with pytest.raises(BudgetSpent):
            here.run(plan_of("bf16"), "screen", STOP)
        here.keep_back(Later())
        here.run(plan_of("bf16"), "proof", STOP)

    def test_what_it_stops_tells_nothing_of_the_plan(self, tmp_path: Path) -> None:
        late = took(8.0, state=State.TIMED_OUT, reason="Too slow.", measurement=None)
        here, launcher = shop(
            tmp_path, took(5.0), late, replace(late, seconds=7.1), granted=self.BUDGET
        )
        here.baseline()
        assert here.run(plan_of("bf16"), "screen", STOP).reason == "Too slow."
        with pytest.raises(BudgetSpent):
            here.run(plan_of("compile"), "screen", STOP)
        assert [order.limit_seconds for order in launcher.orders] == [8.0, 8.0, 7.0]
        reason = here.record.trials[-1].reason
        assert "budget" in reason and "7 s" in reason

    def test_what_it_may_stop_is_wanted_whole(self, tmp_path: Path) -> None:
        """A plan's first steps say little of it: three of them once undid its proof."""
        here, launcher = shop(tmp_path, *[took(6.5)] * 3, granted=self.BUDGET)
        here.baseline()
        here.run(plan_of("bf16"), "proof", STOP)
        here.run(plan_of("bf16"), "proof", STOP)
        assert [order.limit_seconds for order in launcher.orders] == [8.0, 8.0, 7.0]
        assert [order.in_part for order in launcher.orders] == [True, True, False]

    def test_an_examination_is_wanted_whole(self, tmp_path: Path) -> None:
        """With fewer steps than the reference's it would look like another training."""
        here, launcher = shop(tmp_path, took(3.0), took(3.0), granted=self.BUDGET)
        here.baseline()
        exam = Exam(str(tmp_path / "weights"), True, steps=6, forced=())
        here.examined(plan_of("bf16"), exam, "candidate")
        assert [order.in_part for order in launcher.orders] == [True, False]

    def test_is_spent_when_no_more_is_left_than_such_a_trial_takes(self, tmp_path: Path) -> None:
        here, launcher = shop(tmp_path, took(3.0), took(7.5), took(4.0), granted=self.BUDGET)
        here.baseline()
        here.run(plan_of("compile"), "proof", STOP)
        here.run(plan_of("bf16"), "proof", STOP)
        with pytest.raises(BudgetSpent):
            here.run(plan_of("compile"), "proof", STOP)
        assert len(launcher.orders) == 3

    def test_always_does_for_a_first_try(self, tmp_path: Path) -> None:
        here, launcher = shop(tmp_path, took(3.0), granted=replace(self.BUDGET, budget=0.5))
        here.baseline()
        assert launcher.orders[0].limit_seconds == pytest.approx(0.5, abs=0.4)

    def test_is_spent_by_the_clock(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """What is done between trials counts, and of replayed ones what they took then."""
        now = 1000.0
        monkeypatch.setattr(workshop, "time", SimpleNamespace(monotonic=lambda: now))
        before = took(3.0, purpose="screen", plan=plan_of("bf16"))
        here, _ = shop(tmp_path, took(5.0), granted=self.BUDGET, earlier=(before,))
        here.run(plan_of("bf16"), "screen", STOP)
        now += 9.0
        here.run(plan_of("tf32"), "screen", STOP)
        assert (here.spent, here.left) == (8.0, 20.0 - 3.0 - 9.0)


class TestLookingIntoAShortScript:
    SHORT = took(3.0, inspection=Inspection(steps=4), ran_out=True)

    def test_is_done_twice(self, tmp_path: Path) -> None:
        here, launcher = shop(tmp_path, self.SHORT, took(3.0, inspection=Inspection(steps=9)))
        looked = here.looked(Plan())
        assert looked.inspection == Inspection(steps=9)
        assert [order.purpose for order in launcher.orders] == ["look", "look"]

    def test_but_once_where_the_time_is_over(self, tmp_path: Path) -> None:
        granted = Granted(limit=8.0, budget=7.0, steps=None)
        here, launcher = shop(tmp_path, took(3.0), self.SHORT, granted=granted)
        here.baseline()
        assert here.looked(Plan()).inspection == Inspection(steps=4)
        assert len(launcher.orders) == 2


class TestReplay:
    def test_hands_out_equal_trials_in_the_order_they_were_run(self, tmp_path: Path) -> None:
        before = tuple(took(float(n), purpose="proof", number=n) for n in (5, 9))
        here, launcher = shop(tmp_path, took(1.0), earlier=before)
        seconds = [here.run(Plan(), "proof", STOP).seconds for _ in range(3)]
        assert seconds == [5.0, 9.0, 1.0]
        assert [trial.number for trial in here.record.trials] == [1, 2, 3]
        assert len(launcher.orders) == 1

    def test_is_of_the_same_plan_for_the_same_purpose(self, tmp_path: Path) -> None:
        before = (took(5.0, purpose="proof"), took(6.0, purpose="screen", plan=plan_of("bf16")))
        here, launcher = shop(tmp_path, took(1.0), earlier=before)
        here.run(plan_of("bf16"), "proof", STOP)
        assert len(launcher.orders) == 1

    def test_of_an_interrupted_trial_does_not_happen(self, tmp_path: Path) -> None:
        before = (took(5.0, purpose="proof", state=State.INTERRUPTED),)
        here, _ = shop(tmp_path, took(1.0), earlier=before)
        assert here.run(Plan(), "proof", STOP).seconds == 1.0

    def test_needs_no_budget(self, tmp_path: Path) -> None:
        before = tuple(took(7.0, purpose="proof") for _ in range(4))
        here, _ = shop(tmp_path, granted=TestBudget.BUDGET, earlier=before)
        for _ in before:
            here.run(Plan(), "proof", STOP)
        assert here.spent == 28.0

    def test_keeps_on_disk_what_is_still_to_come(self, tmp_path: Path) -> None:
        before = tuple(took(float(n), purpose="proof") for n in (5, 9))
        here, _ = shop(tmp_path, earlier=before)
        here.run(Plan(), "proof", STOP)
        assert [one.seconds for one in study.load(tmp_path / "study.json").trials] == [5.0, 9.0]
        here.note(Found(Options(), verdict="It is over."))
        assert [one.seconds for one in study.load(tmp_path / "study.json").trials] == [5.0]

    def test_of_an_examination_does_not_need_the_weights_it_began_from(
        self, tmp_path: Path
    ) -> None:
        before = (took(5.0, purpose="candidate", tied_to="reference"),)
        here, launcher = shop(tmp_path, earlier=before)
        here.examined(Plan(), exam(tmp_path), "candidate")
        assert launcher.orders == []

    def test_of_an_examination_is_not_from_other_weights(self, tmp_path: Path) -> None:
        before = (took(5.0, purpose="candidate", tied_to="reference-1"),)
        (tmp_path / "reference").mkdir()
        here, launcher = shop(tmp_path, took(1.0), earlier=before)
        assert here.examined(Plan(), exam(tmp_path), "candidate").tied_to == "reference"
        assert len(launcher.orders) == 1

    def test_nothing_is_examined_from_weights_that_are_gone(self, tmp_path: Path) -> None:
        here, launcher = shop(tmp_path, took(1.0), took(1.0))
        with pytest.raises(WeightsGone):
            here.examined(Plan(), exam(tmp_path), "candidate")
        assert launcher.orders == []
        # A reference that was run here has saved what it could, and a run of it alone needs none.
        here.examined(Plan(), exam(tmp_path, is_reference=True), "reference")
        here.examined(Plan(), exam(tmp_path), "candidate")

    def test_of_a_reference_that_was_killed_clears_its_weights(self, tmp_path: Path) -> None:
        weights = tmp_path / "reference" / "24.pt"
        weights.parent.mkdir()
        weights.touch()
        here, _ = shop(tmp_path, took(1.0))
        here.examined(Plan(), exam(tmp_path, is_reference=True), "reference")
        assert not weights.exists()

    @pytest.mark.parametrize("state", [State.CRASHED, State.TIMED_OUT, State.NOTHING_MEASURED])
    def test_of_a_baseline_that_failed_does_not_happen(self, state: State, tmp_path: Path) -> None:
        before = (took(5.0, purpose=workshop.BASELINE, state=state, measurement=None),)
        here, _ = shop(tmp_path, took(1.0), earlier=before)
        assert here.baseline().state is State.COMPLETE
        assert len(here.record.trials) == 1
