from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hotloop import machine, study
from hotloop.errors import FailedInTraining, PlanError
from hotloop.plan import Plan
from hotloop.study import Study
from hotloop.trial.order import Order
from hotloop.trial.result import Failure
from hotloop.trial.trial import State, Trial
from hotloop.verify import verify
from tests import builders
from tests.searching import Listener, PaperJob, found
from tests.simulated import plan_of


@pytest.fixture(autouse=True)
def paper_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "describe", builders.machine)


def verified(paper: PaperJob, folder: Path, plan: Plan, steps: int = 150) -> Study:
    return verify(builders.job(), plan, steps, 600.0, folder, paper, Listener())


def test_a_plan_that_trains_the_same_is_said_to_over_all_the_steps(tmp_path: Path) -> None:
    plan = replace(plan_of("fused_optimizer"), script="1234", torch="2.13.0")
    record = verified(PaperJob(), tmp_path, plan)
    equivalence = found(record).equivalence
    assert equivalence is not None and equivalence.same
    assert equivalence.steps == 150
    assert (record.command, found(record).plan) == ("verify", plan)
    assert study.load(tmp_path / "study.json") == record


def test_one_that_trains_otherwise_is_told_apart(tmp_path: Path) -> None:
    paper = PaperJob(changes=frozenset({"fused_optimizer"}))
    equivalence = found(verified(paper, tmp_path, plan_of("fused_optimizer"))).equivalence
    assert equivalence is not None and not equivalence.same
    assert equivalence.reasons == ("step 1: lr is 0.09 instead of 0.1",)


def test_nothing_is_run_twice(tmp_path: Path) -> None:
    paper = PaperJob()
    verified(paper, tmp_path, replace(plan_of("fused_optimizer"), script="1234"))
    runs = ["baseline", "reference", "yardstick", "reseeded", "reseeded", "candidate"]
    assert [purpose.split()[0] for purpose in paper.purposes] == runs


def test_no_weights_are_left_behind(tmp_path: Path) -> None:
    verified(PaperJob(), tmp_path, plan_of("fused_optimizer"))
    assert [path.name for path in tmp_path.iterdir()] == ["study.json"]


def test_nor_when_it_is_interrupted(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        verified(PaperJob(stops_at=4), tmp_path, plan_of("fused_optimizer"))
    assert [path.name for path in tmp_path.iterdir()] == ["study.json"]


def test_an_empty_plan_is_nothing_to_look_at(tmp_path: Path) -> None:
    paper = PaperJob()
    with pytest.raises(PlanError, match="empty"):
        verified(paper, tmp_path, Plan(script="1234"))
    assert paper.orders == []


def test_a_job_that_fails_as_it_is_shows_its_own_failure(tmp_path: Path) -> None:
    def fails(order: Order, trial: Trial) -> Trial:
        return replace(trial, state=State.CRASHED, failure=Failure("ValueError", "no"))

    with pytest.raises(FailedInTraining):
        verified(PaperJob(answer=fails), tmp_path, plan_of("fused_optimizer"))
