"""A search that was stopped goes on, comes to the same end, and repeats nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotloop import study
from hotloop.errors import StudyMismatch
from hotloop.study import Study
from hotloop.trial.order import Order
from hotloop.trial.trial import State, Trial
from tests import builders
from tests.searching import SECONDS, TWO, PaperJob, found, search, timed_out
from tests.simulated import gains

LAW = gains(bf16=1.5, loader_workers=1.2)


def saved(folder: Path) -> Study:
    return study.load(folder / "study.json")


def whole(folder: Path) -> Study:
    search(PaperJob(LAW), folder)
    return saved(folder)


def stopped(folder: Path, at: int, **more: Any) -> PaperJob:
    paper = PaperJob(LAW, stops_at=at)
    with pytest.raises(KeyboardInterrupt):
        search(paper, folder, **more)
    return paper


def stuck(order: Order, trial: Trial) -> Trial:
    return timed_out(order, trial) if order.purpose == "screen" else trial


def test_after_any_trial_it_comes_to_the_same_and_repeats_nothing(tmp_path: Path) -> None:
    uninterrupted = whole(tmp_path / "whole")
    for number in range(2, len(uninterrupted.trials) + 1):
        folder = tmp_path / str(number)
        before = stopped(folder, at=number)
        paper = PaperJob(LAW)
        search(paper, folder, earlier=saved(folder))
        again = saved(folder)
        assert (again.trials, again.found) == (uninterrupted.trials, uninterrupted.found)
        assert len(before.orders) - 1 + len(paper.orders) == len(uninterrupted.trials)


def test_of_a_finished_search_only_what_needs_weights_is_run(tmp_path: Path) -> None:
    """What was compared with weights that are gone is worth nothing beside new ones."""
    finished = whole(tmp_path)
    paper = PaperJob(LAW)
    again = search(paper, tmp_path, earlier=finished)
    assert (again.trials, again.found) == (finished.trials, finished.found)
    examined = [trial.purpose for trial in finished.trials if trial.evidence is not None]
    assert paper.purposes == examined


def test_stopped_again_it_loses_nothing(tmp_path: Path) -> None:
    """Also not what it had not come to yet when it was stopped."""
    finished = whole(tmp_path)
    stopped(tmp_path, at=1, earlier=finished)
    paper = PaperJob(LAW)
    again = search(paper, tmp_path, earlier=saved(tmp_path))
    assert (again.trials, again.found) == (finished.trials, finished.found)
    assert "proof" not in paper.purposes


def test_a_soak_goes_on_from_the_state_it_left(tmp_path: Path) -> None:
    soaks = [one.number for one in whole(tmp_path / "whole").trials if one.purpose == "soak"]
    assert len(soaks) == 3
    folder = tmp_path / "stopped"
    stopped(folder, at=soaks[1])
    paper = PaperJob(LAW)
    record = search(paper, folder, earlier=saved(folder))
    assert paper.purposes[:2] == ["soak", "soak"] and "soak" not in paper.purposes[2:]
    assert found(record).plan is not None


def test_with_more_time_what_ran_out_of_it_is_run_again(tmp_path: Path) -> None:
    short = search(PaperJob(LAW, answer=stuck), tmp_path, replace(TWO, budget=12 * SECONDS))
    screened = [one for one in short.trials if one.purpose == "screen"]
    assert [one.state for one in screened] == [State.TIMED_OUT] * 2
    assert screened[0].plan != screened[1].plan
    paper = PaperJob(LAW)
    record = search(paper, tmp_path, earlier=short)
    assert State.TIMED_OUT not in {trial.state for trial in record.trials}
    assert "baseline" not in paper.purposes


def test_with_the_same_time_it_is_not(tmp_path: Path) -> None:
    short = search(PaperJob(LAW, answer=stuck), tmp_path)
    paper = PaperJob(LAW)
    search(paper, tmp_path, earlier=short)
    assert paper.orders == []


def test_what_was_found_within_a_budget_goes_on_with_a_larger_one(tmp_path: Path) -> None:
    short = search(PaperJob(LAW), tmp_path, replace(TWO, budget=12 * SECONDS))
    paper = PaperJob(LAW)
    record = search(paper, tmp_path, earlier=short)
    assert found(record).plan is not None
    assert {"baseline", "screen"} <= {trial.purpose for trial in short.trials}
    assert "baseline" not in paper.purposes


def test_of_another_job_it_is_refused_and_the_study_left_alone(tmp_path: Path) -> None:
    finished = whole(tmp_path)
    paper = PaperJob()
    other = builders.job(args=("--lr", "1"))
    with pytest.raises(StudyMismatch, match="is of another job"):
        search(paper, tmp_path, job=other, earlier=finished)
    assert paper.orders == []
    assert saved(tmp_path) == finished
