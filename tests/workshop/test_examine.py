"""Which trials an examiner runs, with a launcher that runs none."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotloop import study
from hotloop.equivalence.judge import LOWER_PRECISION, SAME_MATH, Equivalence, Witnesses
from hotloop.evidence import Evidence, StepSeen, Structure
from hotloop.measurement import Inventory, Measurement, Memory, Precision, Software
from hotloop.plan import LeverSetting, Plan
from hotloop.search.climb import BudgetSpent
from hotloop.study import Found, Options, Study
from hotloop.trial.order import Glimpse, Order, Watcher
from hotloop.trial.spec import Exam, StopRule
from hotloop.trial.trial import State, Trial
from hotloop.workshop import examine
from hotloop.workshop.exam_steps import LEAST, STEPS, optimizer_steps, steps_for
from hotloop.workshop.examine import Examiner
from hotloop.workshop.granted import Granted
from hotloop.workshop.mantissas import own_mantissa
from hotloop.workshop.room import Host
from hotloop.workshop.watching import Outlook
from hotloop.workshop.workshop import Workshop
from tests import builders

FUSED = LeverSetting("fused_optimizer", {})
BF16 = LeverSetting("bf16", {})


class Launcher:
    """Every trial is examined and has nothing to say."""

    def __init__(self, draws: bool = False, steps: int | None = None) -> None:
        self.draws = draws
        self.steps = steps
        """After which the script comes to its own end."""
        self.orders: list[Order] = []

    def launch(self, order: Order, watcher: Watcher) -> Trial:
        self.orders.append(order)
        if order.exam is not None and order.exam.is_reference:
            Path(order.exam.folder).mkdir(exist_ok=True)
        steps = [StepSeen(0, True, True, 1, 0)] * (self.steps or 0)
        evidence = Evidence(Structure(steps), draws=self.draws)
        ended = self.steps is not None
        told = {"purpose": order.purpose, "evidence": evidence, "ran_out": ended}
        return builders.trial(plan=order.plan, **told)

    @property
    def purposes(self) -> list[str]:
        return [order.purpose for order in self.orders]

    def exam(self, purpose: str) -> Exam:
        (exam,) = [order.exam for order in self.orders if order.purpose == purpose]
        assert exam is not None
        return exam


class NoTime(dict[int, Trial]):
    """There is none for what is not known yet."""

    def __contains__(self, key: object) -> bool:
        if not super().__contains__(key):
            raise BudgetSpent
        return True


class Nobody:
    def planned(self, study: Study, outlook: Outlook) -> None: ...

    def began(self, number: int, purpose: str, plan: Plan) -> None: ...

    def glimpsed(self, glimpse: Glimpse) -> None: ...

    def ended(self, trial: Trial, study: Study) -> None: ...


@pytest.fixture
def examiner(tmp_path: Path) -> Callable[..., tuple[Examiner, Launcher]]:
    def make(
        draws: bool = False, ends: int | None = None, **changes: Any
    ) -> tuple[Examiner, Launcher]:
        launcher = Launcher(draws, ends)
        job = builders.job(tmp_path)
        record = study.begin("verify", job, builders.machine(), Found(Options()))
        granted = Granted(limit=60.0, budget=None, steps=None)
        workshop = Workshop(job, record, granted, tmp_path, launcher, Nobody())
        return Examiner(workshop, builders.measurement(**changes), STEPS), launcher

    return make


def test_a_plan_of_the_same_arithmetic_is_examined_once(examiner: Any) -> None:
    one, launcher = examiner()
    one.examine(Plan((FUSED,)))
    assert launcher.purposes == [
        "reference",
        "yardstick 23",
        "reseeded 1",
        "reseeded 2",
        "candidate",
    ]
    assert [order.plan.is_empty for order in launcher.orders] == [True] * 4 + [False]


def test_what_it_is_compared_with_is_run_once_for_all_plans(examiner: Any) -> None:
    one, launcher = examiner()
    one.examine(Plan((FUSED,)))
    before = len(launcher.orders)
    one.examine(Plan((FUSED, LeverSetting("chunked_loss", {}))))
    assert launcher.purposes[before:] == ["candidate"]
    one.examine(Plan((FUSED,)))  # each plan once
    assert len(launcher.orders) == before + 1


def test_what_was_run_before_the_time_was_over_is_not_run_again(
    examiner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, launcher = examiner()
    examined = one.workshop.examined

    def until_the_second_seed(plan: Plan, exam: Exam, purpose: str, divisor: int) -> Trial:
        if purpose == "reseeded 2":
            raise BudgetSpent
        ran: Trial = examined(plan, exam, purpose, divisor)
        return ran

    with monkeypatch.context() as limited:
        limited.setattr(one.workshop, "examined", until_the_second_seed)
        with pytest.raises(BudgetSpent):
            one.examine(Plan((FUSED,)))
    one.examine(Plan((FUSED,)))  # there is time again
    assert launcher.purposes.count("reseeded 1") == 1


@pytest.fixture
def content(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was run trains the same."""
    same = Equivalence(True, (), STEPS, 5, (), ())
    monkeypatch.setattr(examine, "judge", lambda *args: same)


def test_what_claims_the_same_arithmetic_is_held_to_it_without_the_rest(
    examiner: Any, content: None
) -> None:
    one, launcher = examiner()
    one.examine(Plan((FUSED, BF16)))
    candidates = [order.plan.levers for order in launcher.orders if order.purpose == "candidate"]
    assert candidates == [(FUSED,), (FUSED, BF16)]
    assert [said for said in launcher.purposes if "yardstick" in said] == [
        "yardstick 23",
        "yardstick 7",
    ]


def test_of_a_part_that_trains_otherwise_the_whole_need_not_be_run(examiner: Any) -> None:
    one, launcher = examiner()
    assert not one.examine(Plan((FUSED, BF16))).same
    candidates = [order.plan.levers for order in launcher.orders if order.purpose == "candidate"]
    assert candidates == [(FUSED,)]


def test_a_part_that_was_examined_before_the_time_was_over_is_not_again(
    examiner: Any, content: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, launcher = examiner()
    with monkeypatch.context() as patch, pytest.raises(BudgetSpent):
        patch.setattr(one, "_yardsticks", NoTime({23: one._yardstick(23)}))
        one.examine(Plan((FUSED, BF16)))
    one._yardsticks = {}
    one.examine(Plan((FUSED, BF16)))
    candidates = [order.plan.levers for order in launcher.orders if order.purpose == "candidate"]
    assert candidates == [(FUSED,), (FUSED, BF16)]


@pytest.fixture
def roomy(examiner: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """On a machine where everything fits beside everything."""
    monkeypatch.setattr(examine, "this_host", lambda cores: Host(64, 2**40))

    def make() -> tuple[Examiner, Launcher]:
        memory = Memory(host_peak=2**28, device_peak_reserved=2**28, device_total=2**40)
        one, launcher = examiner(memory=memory)
        one.workshop.run(Plan(), "baseline", StopRule())
        return one, launcher

    return make


EVERYTHING = ["candidate", "candidate", "reseeded 1", "reseeded 2", "yardstick 23", "yardstick 7"]


def test_where_there_is_room_trials_are_run_ahead_and_each_once(roomy: Any, content: None) -> None:
    one, launcher = roomy()
    assert one.examine(Plan((FUSED, BF16))).same
    assert launcher.purposes[:2] == ["baseline", "reference"]
    assert sorted(launcher.purposes[2:]) == EVERYTHING
    recorded = [trial.purpose for trial in one.workshop.record.trials]
    assert sorted(recorded[2:]) == EVERYTHING  # in the order in which they are looked at
    assert recorded[2:4] == ["yardstick 23", "reseeded 1"]


def test_what_came_to_nothing_beside_others_is_run_again_by_itself(
    roomy: Any, content: None
) -> None:
    one, launcher = roomy()
    starved = ["yardstick 7"]

    def launch(order: Order, watcher: Watcher) -> Trial:
        trial = Launcher.launch(launcher, order, watcher)
        if order.purpose in starved:
            starved.remove(order.purpose)
            return replace(trial, state=State.OUT_OF_MEMORY)
        return trial

    launcher.launch = launch
    assert one.examine(Plan((FUSED, BF16))).same
    assert sorted(launcher.purposes[2:]) == sorted([*EVERYTHING, "yardstick 7"])
    states = {trial.purpose: trial.state for trial in one.workshop.record.trials}
    assert states["yardstick 7"] is State.COMPLETE
    # What was in vain has cost something all the same.
    assert one.workshop.spent > sum(trial.cost for trial in one.workshop.record.trials)


def test_what_is_known_is_not_run_ahead_again(roomy: Any, content: None) -> None:
    one, launcher = roomy()
    one.examine(Plan((FUSED,)))
    before = len(launcher.orders)
    one.examine(Plan((FUSED, BF16)))
    assert sorted(launcher.purposes[before:]) == ["candidate", "yardstick 7"]


def test_trials_that_ran_side_by_side_cost_what_the_search_has_waited(
    roomy: Any, content: None
) -> None:
    one, _ = roomy()
    before, began = one.workshop.spent, time.monotonic()
    one.examine(Plan((FUSED, BF16)))
    reference = one.reference.seconds
    waited = time.monotonic() - began
    assert one.workshop.spent - before - reference <= waited


def test_a_plan_of_lower_precision_alone_is_examined_by_its_own_yardstick(examiner: Any) -> None:
    one, launcher = examiner()
    one.examine(Plan((BF16,)))
    assert launcher.purposes.count("candidate") == 1
    assert "yardstick 23" not in launcher.purposes


def test_each_part_is_judged_by_what_it_claims(
    examiner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    factors: list[tuple[float, str]] = []

    def judge(
        candidate: Trial, witnesses: Witnesses, factor: float, regroups: bool, hides: bool
    ) -> Equivalence:
        assert not regroups and not hides
        factors.append((factor, witnesses.yardstick.purpose))
        return Equivalence(len(factors) == 1, (), STEPS, 5, (), ())

    monkeypatch.setattr(examine, "judge", judge)
    one, _ = examiner()
    assert not one.examine(Plan((FUSED, BF16))).same
    assert factors == [(SAME_MATH, "yardstick 23"), (LOWER_PRECISION, "yardstick 7")]


def test_every_trial_knows_its_part(examiner: Any, tmp_path: Path) -> None:
    one, launcher = examiner()
    one.examine(Plan((FUSED,)))
    reference = launcher.exam("reference")
    forced = (36, 41, 46, 50, 55)
    assert reference == Exam(str(tmp_path / "reference-1"), True, STEPS, forced)
    beside = replace(reference, is_reference=False)
    assert launcher.exam("candidate") == beside
    assert launcher.exam("yardstick 23") == replace(beside, noise_bits=23)
    # Another seed is followed as far as a run is free.
    free = replace(launcher.exam("reseeded 2"), folder=beside.folder)
    assert free == replace(beside, steps=36, forced=(), seed=2)


def test_compiled_code_draws_as_eager_code_does_where_a_model_draws(examiner: Any) -> None:
    one, launcher = examiner(draws=True)
    one.examine(Plan((FUSED,)))
    assert launcher.exam("candidate").eager_random
    assert not launcher.exam("yardstick 23").eager_random


def test_of_two_optimizers_twice_the_steps_are_looked_at(examiner: Any) -> None:
    inventory = Inventory(optimizers=[builders.optimizer(), builders.optimizer()])
    one, launcher = examiner(inventory=inventory)
    one.examine(Plan((FUSED,)))
    assert launcher.exam("reference").steps == 2 * STEPS


@pytest.mark.parametrize(
    ("steps", "turns"),
    [((16, *[15] * 9), 10), ((94, 19), 1), ((40, 0), 1), ((1, 1, 1), 3), ((), 1)],
)
def test_a_trial_may_end_before_all_optimizers_have_had_their_turn(
    steps: tuple[int, ...], turns: int
) -> None:
    inventory = Inventory(optimizers=[replace(builders.optimizer(), steps=each) for each in steps])
    assert optimizer_steps(replace(builders.measurement(), inventory=inventory)) == turns


def test_without_evidence_nothing_is_the_same(examiner: Any) -> None:
    one, _ = examiner()
    found = one.examine(Plan((FUSED,)))
    assert not found.same
    assert "no loss was seen, so there is nothing to compare" in found.reasons


def test_the_references_weights_are_thrown_away_in_the_end(examiner: Any, tmp_path: Path) -> None:
    one, _ = examiner()
    (tmp_path / "reference-1").mkdir()
    one.close()
    assert not (tmp_path / "reference-1").exists()
    one.close()


def test_they_are_kept_for_a_search_that_goes_on_unless_they_are_very_large(
    examiner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = examiner()
    (tmp_path / "reference-1").mkdir()
    (tmp_path / "reference-1" / "24.pt").write_bytes(b"12345")
    one.close(goes_on=True)
    assert (tmp_path / "reference-1").exists()
    monkeypatch.setattr(examine, "MOST_KEPT", 4)
    one.close(goes_on=True)
    assert not (tmp_path / "reference-1").exists()


def test_a_slow_job_is_looked_at_for_fewer_steps_but_not_for_too_few() -> None:
    baseline = builders.trial()
    assert steps_for(0.01, baseline) == STEPS
    assert steps_for(1.2, baseline) == 50
    assert steps_for(60.0, baseline) == LEAST


def test_a_job_that_ends_by_itself_is_looked_at_to_its_end() -> None:
    events = builders.training(steps=12).events
    short = builders.trial(ran_out=True, measurement=builders.measurement(events))
    assert steps_for(0.01, short) == 12
    assert steps_for(0.01, replace(short, ran_out=False)) == STEPS


def computing(
    *dtypes: str, gpu: bool = True, convolutions: int = 0, in_1d: int = 0, **precision: Any
) -> Measurement:
    counts = {"convolutions": convolutions, "convolutions_1d": in_1d}
    model = builders.model(dtypes=list(dtypes), **counts)
    return builders.measurement(
        software=Software(device=builders.GPU if gpu else "cpu"),
        inventory=Inventory(models=[model], precision=Precision(**precision)),
    )


@pytest.mark.parametrize(
    ("measurement", "bits"),
    [
        (computing("float32"), 23),
        (computing("float64"), 52),
        (computing("float32", "bfloat16"), 7),
        (computing("float32", "uint8"), 23),
        (computing(), 23),
        (computing("float32", autocast="float16"), 10),
        (computing("float32", autocast="bfloat16", tf32_matmul=True), 7),
        (computing("float32", tf32_matmul=True), 10),
        (computing("float32", tf32_matmul=True, gpu=False), 23),
        (computing("float32", tf32_cudnn=True), 23),
        (computing("float32", tf32_cudnn=True, convolutions=1), 10),
        (computing("float32", tf32_cudnn=True, in_1d=1), 10),
    ],
)
def test_the_coarsest_format_of_the_job_itself(measurement: Measurement, bits: int) -> None:
    assert own_mantissa(measurement) == bits


def test_a_job_that_ends_before_is_compared_within_its_own_steps(examiner: Any) -> None:
    one, launcher = examiner(ends=32)
    one.examine(Plan((FUSED,)))
    assert launcher.purposes[:3] == ["reference", "reference", "yardstick 23"]
    asked = [order.exam.steps for order in launcher.orders]
    assert asked == [STEPS, 32, 32, 19, 19, 32]
    assert max(launcher.orders[1].exam.forced) < 32
