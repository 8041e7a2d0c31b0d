"""What a report says, whatever kind of study it is made of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hotloop import study
from hotloop.diagnose.base import Effort, Finding
from hotloop.diagnose.checklist import Point, Status
from hotloop.diagnose.diagnosis import Diagnosis
from hotloop.diagnose.numbers import Numbers
from hotloop.energy import PowerLog
from hotloop.equivalence.judge import Equivalence
from hotloop.evidence import Evidence, StepSeen, Structure
from hotloop.figures import figures
from hotloop.inspection import Frame
from hotloop.levers.base import Receipt
from hotloop.measurement import Inventory, Losses, Software
from hotloop.plan import Plan
from hotloop.report.energy_rows import Prices
from hotloop.report.page import Page, page
from hotloop.report.roofline_rows import NO_ROOF, NOT_COUNTED, Roofline
from hotloop.roof import Roof
from hotloop.search.climb import Climb
from hotloop.study import Found, Options, Study
from hotloop.trial.trial import State
from tests.builders import GPU, job, machine, measurement, training, trial
from tests.report.rich import rich
from tests.report.studies import BF16, BOTH, failed, lost, numbered, searched, with_children, won
from tests.test_recordings import GPT2, RESNET, recorded


def profiled(*trials: Any, **changes: Any) -> Study:
    begun = study.begin("profile", job(), machine())
    return replace(begun, trials=numbered(*trials), **changes)


def diagnosis(**changes: Any) -> Diagnosis:
    finding = Finding(
        "waiting_for_data",
        "Half of a step waits for data",
        0.5,
        "Give the loader workers.",
        Effort.SETTING,
        ("10 ms of 20",),
        (Frame("/nowhere/train.py", 12, "main", True, "for x in loader:"),),
        ("loader_workers",),
    )
    made = Diagnosis(
        "Half of a step waits for data.",
        (finding,),
        (Point("data loading", Status.FAILED, "Half of a step waits"),),
        Numbers(flops_step=2e9, flops_second=1e11, intensity=10.0),
    )
    return replace(made, **changes)


def key_figures(found: Page) -> dict[str, str]:
    return {one.label: one.value for one in found.key_figures}


class TestWon:
    def test_the_result_comes_first(self) -> None:
        head = page(won()).headline
        assert head.big == "2.00× faster" and head.tone == "good"
        assert head.sentence.startswith("Indistinguishable training over 60 steps: 20.0 ms → 10.0")
        assert head.gain is not None and head.gain.pairs == 5

    def test_key_figures_stand_beside_what_they_were(self) -> None:
        figures = {one.label: one for one in page(won()).key_figures}
        assert (figures["a step"].before, figures["a step"].value) == ("20.0 ms", "10.0 ms")
        assert figures["the search took"].note == "7 runs"
        assert "paid back after" in figures

    def test_of_memory_it_is_said_whose_and_no_time_is_paid_back(self) -> None:
        record = won(options=Options(objective="memory"))
        trials = tuple(with_children(trial, 2**29) for trial in record.trials)
        figures = {one.label: one for one in page(replace(record, trials=trials)).key_figures}
        assert (figures["peak memory"].value, figures["peak memory"].note) == (
            "1.5 GiB",
            "with child processes",
        )
        assert "paid back after" not in figures

    def test_both_sides_are_shown(self) -> None:
        found = page(won())
        assert [one.label for one in found.steps.breakdowns] == ["as it is", "under the plan"]
        assert [one.label for one in found.steps.timelines] == ["as it is", "under the plan"]
        before, after = found.steps.breakdowns
        assert after.seconds == pytest.approx(before.seconds / 2)

    def test_what_was_refused_and_what_it_cost(self) -> None:
        tried, untried = page(won()).refused
        assert (tried.lever, tried.cost, untried.lever) == ("tf32", 65.0, "pin_memory")

    def test_how_to_apply_it(self) -> None:
        found = page(won(), plan_file="other plan.json")
        assert found.to_apply[0][1] == "hotloop run --plan 'other plan.json' train.py --lr 3e-4"
        assert '"lever": "bf16"' in found.plan

    def test_how_to_do_it_again(self) -> None:
        options = Options(budget=90.0, steps=20, only=("bf16",), effect="same_math", look=True)
        (_, folder), (_, line) = page(won(options=options)).to_reproduce
        assert folder == "cd /nowhere"
        said = "hotloop optimize --budget 90s --steps 20 --only bf16 --effect same_math"
        assert line == f"{said} --python /usr/bin/python3 train.py --lr 3e-4"


class TestNotWon:
    def test_it_is_as_clear_as_a_success(self) -> None:
        found = page(lost())
        assert found.headline.big == "No plan is handed out"
        assert found.headline.sentence == "Nothing makes this job faster."
        assert found.waterfall is None and found.plan == "" and found.to_apply == ()
        assert [one.label for one in found.steps.breakdowns] == ["as it is"]

    def test_a_search_of_which_every_trial_crashed(self) -> None:
        study = lost()
        crashed = failed("screen", Plan((BF16,)), state=State.CRASHED, reason="It failed: boom.")
        found = page(replace(study, trials=numbered(study.trials[0], crashed)))
        assert found.headline.big == "Everything that was tried failed"
        assert found.headline.tone == "bad"
        assert found.trials[1].failed and found.trials[1].reason == "It failed: boom."

    def test_a_search_that_the_budget_cut_short(self) -> None:
        late = failed(
            "screen", Plan((BF16,)), state=State.TIMED_OUT, reason="The budget was spent."
        )
        study = lost(climb=Climb(Plan(), (), untried=("bf16",)))
        found = page(replace(study, trials=numbered(study.trials[0], late)))
        assert found.headline.big == "No plan is handed out"

    def test_the_job_itself_failed(self) -> None:
        crashed = failed("baseline", Plan(), state=State.CRASHED, reason="It failed: no file.")
        found = page(searched(Found(Options()), crashed))
        assert found.headline.big == "The job itself failed"
        assert found.headline.sentence == "It failed: no file."
        assert found.steps.breakdowns == () and found.memory.held == ()

    def test_a_search_that_goes_on(self) -> None:
        found = page(lost(verdict=""))
        assert found.headline.big == "The search is not finished"
        assert "--resume" in found.headline.sentence

    def test_nothing_at_all(self) -> None:
        found = page(searched(Found(Options())))
        assert found.headline.big == "The search is not finished"
        assert page(profiled()).headline.big == "Nothing was measured"

    def test_no_time_left_is_a_reason(self) -> None:
        climb = Climb(Plan(), (), ("compile",))
        refused = {one.lever: one.reason for one in page(lost(climb=climb)).refused}
        assert refused["compile"] == "no time was left for a trial and its proof"


class TestProfiled:
    def test_its_figures_and_what_limits_it(self) -> None:
        found = page(profiled(trial(purpose=""), diagnosis=diagnosis()))
        assert found.headline.big == "20.0 ms a step"
        assert found.headline.sentence == "Half of a step waits for data."
        assert key_figures(found)["throughput"] == "400 samples/s"
        assert found.diagnosed is not None
        (finding,) = found.diagnosed.findings
        assert (finding.gain, finding.share) == (2.0, 0.5)
        (excerpt,) = finding.excerpts
        assert (excerpt.where, excerpt.source) == ("train.py:12", "for x in loader:")

    def test_what_is_not_known_is_left_out(self) -> None:
        found = page(profiled(trial(purpose="")))
        assert "of the machine's peak" not in key_figures(found)
        assert found.roofline == NOT_COUNTED
        assert found.costs == () and found.diagnosed is None

    def test_a_share_of_the_peak_only_where_all_was_counted(self) -> None:
        label, made = "of the machine's peak", diagnosis()
        counted = replace(made.numbers, mfu_measured=0.4)
        partly = replace(counted, flops_are_lower_bound=True)
        for numbers, shown in ((counted, True), (partly, False)):
            told = replace(made, numbers=numbers)
            assert (
                label in key_figures(page(profiled(trial(purpose=""), diagnosis=told)))
            ) is shown

    def test_the_roofline_needs_a_roof(self) -> None:
        assert page(profiled(trial(purpose=""), diagnosis=diagnosis())).roofline == NO_ROOF

    def test_the_roofline(self) -> None:
        roof = Roof(cpu_matrix_flops={"float32": 3e11, "bfloat16": 1e11}, cpu_memory_bandwidth=2e10)
        found = page(profiled(trial(purpose=""), diagnosis=diagnosis(), roof=roof)).roofline
        assert isinstance(found, Roofline)
        assert [one.precision for one in found.ceilings] == ["bfloat16", "float32"]
        assert [(one.label, one.flops) for one in found.places] == [("as it is", 1e11)]

    def test_the_plan_computes_the_same_in_less_time(self) -> None:
        roof = Roof(cpu_matrix_flops={"float32": 3e12}, cpu_memory_bandwidth=2e10)
        found = page(replace(won(), diagnosis=diagnosis(), roof=roof)).roofline
        assert isinstance(found, Roofline)
        before, after = found.places
        assert after.flops == pytest.approx(2 * before.flops)
        assert after.intensity == before.intensity


class TestTraining:
    def examined(self, purpose: str, values: list[float | None], **changes: Any) -> Any:
        events = training(len(values)).events
        losses = Losses(event=[0] * len(values), value=values)
        steps = [StepSeen(0, True, True, 1, 0)] * len(values)
        evidence = Evidence(Structure(steps), forced=changes.pop("forced", []))
        made = measurement(events, losses=losses)
        return trial(purpose=purpose, measurement=made, evidence=evidence, **changes)

    def test_losses_are_laid_over_each_other(self) -> None:
        trials = [
            self.examined("reference", [3.0, 2.0, 1.0]),
            self.examined("candidate", [9.0, 9.0, 9.0], plan=Plan((BF16,))),
            self.examined("candidate", [3.0, 2.1, 1.0], plan=BOTH),
            self.examined("reseeded 1", [3.1, None, 1.1]),
        ]
        study = won()
        found = page(replace(study, trials=numbered(*study.trials, *trials))).training.losses
        assert found is not None
        curves = {curve.role: curve for curve in found.curves}
        assert curves["reference"].points == ((1, 3.0), (2, 2.0), (3, 1.0))
        assert curves["plan"].points[1] == (2, 2.1)  # of the plan that is handed out
        assert curves["seed"].points == ((1, 3.1), (3, 1.1))

    def test_what_was_forced_is_not_drawn(self) -> None:
        made = self.examined("reference", [3.0, 2.0, 1.0, 0.5], forced=[2, 3])
        found = page(searched(Found(Options()), made)).training.losses
        assert found is not None and found.free == 2
        assert found.curves[0].points == ((1, 3.0), (2, 2.0))

    def test_verified(self) -> None:
        judged = Equivalence(False, ("the batches differ",), 10, 0, (), ("anything",))
        begun = replace(study.begin("verify", job(), machine()), found=Found(Options()))
        found = page(replace(begun, found=Found(Options(), equivalence=judged)))
        assert found.headline.big == "Not shown to be the same training"
        assert found.headline.sentence == "The batches differ."
        assert page(begun).headline.tone == "bad"  # nothing was compared


class TestRuns:
    def test_every_run_with_its_receipt_and_log(self) -> None:
        receipt = Receipt("compile", True, evidence={"graphs_captured": 2})
        missing = Receipt("bf16", False, "no product was seen")
        made = trial(purpose="", receipts=(receipt, missing), log="trial-1/output.log")
        (one,) = page(profiled(made), {"trial-1/output.log": "epoch 1\x1b[2J"}).trials
        assert one.receipts == (
            ("compile", "graphs captured 2"),
            ("bf16", "did not take effect: no product was seen"),
        )
        assert one.printed == "epoch 1"
        assert one.step is not None and one.step.low <= one.step.mean <= one.step.high

    def test_only_what_was_timed_has_a_speed(self) -> None:
        runs = page(won()).trials
        assert [one.step is not None for one in runs] == [True] * 6 + [False]


def test_what_a_profiler_saw() -> None:
    ((kind, found),) = page(rich()).depths
    assert kind == "kernel"
    (table,) = found.tables
    assert table.title == "operators, a step (4 were profiled)"


class TestCosts:
    def test_energy_and_money_of_an_epoch(self) -> None:
        events = training(20).events
        end = events.time_ns[-1]
        power = PowerLog(
            time_ns=[0, end // 2, end],
            joules=[0.0, 50.0, 100.0],
            watts=[None] * 3,
            temperature=[None] * 3,
            sm_clock=[None] * 3,
            utilisation=[None] * 3,
            throttling=[None] * 3,
        )
        made = measurement(events, software=Software(device=GPU))
        found = page(profiled(trial(purpose="", measurement=made, power=power)), None, PRICES)
        (cost,) = found.costs
        assert cost.watts == pytest.approx(100 / (end / 1e9), rel=0.05)
        assert cost.epoch_seconds is not None and cost.kwh_epoch is not None
        assert cost.machine_epoch == pytest.approx(cost.epoch_seconds / 3600 * 3.6)
        assert cost.electricity_epoch == pytest.approx(cost.kwh_epoch * 0.5)

    def test_without_a_price_or_a_counter_nothing_is_claimed(self) -> None:
        assert page(won()).costs == ()

    def test_a_price_alone_does(self) -> None:
        before, after = page(won(), None, Prices(hour=3.6)).costs
        assert before.machine_epoch == pytest.approx(0.002)
        assert before.joules_step is None and after.electricity_epoch is None
        assert before.machine_steps is None

    def test_where_no_epoch_is_known_steps_are_priced(self) -> None:
        made = measurement(training(20).events, inventory=Inventory())
        (cost,) = page(profiled(trial(purpose="", measurement=made)), None, PRICES).costs
        took = figures(made)
        assert took is not None and cost.epoch_seconds is None
        assert cost.machine_steps == pytest.approx(100_000 * took.step.mean / 3600 * 3.6)


PRICES = Prices(hour=3.6, kwh=0.5, currency="EUR")


@pytest.mark.parametrize("name", [RESNET, GPT2])
def test_studies_of_an_older_version_stay_readable(name: str) -> None:
    found = page(recorded(name))
    assert found.where.startswith(GPU)
    assert found.headline.big == "The search is not finished"
    assert {lane.name for one in found.steps.timelines for lane in one.lanes} >= {"CPU", "GPU"}
    assert found.training.losses is not None
    assert found.memory.held[0].where == "GPU"


def test_a_point_of_the_checklist_brings_no_second_colon() -> None:
    point = Point("data loading", Status.FAILED, "74% of a step waits for data: too few workers")
    found = page(replace(won(), diagnosis=diagnosis(checklist=(point,)))).diagnosed
    assert found is not None
    assert found.checklist[0][2] == "74% of a step waits for data (too few workers)"
