"""A search that was stopped goes on, comes to the same end, and repeats nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotloop import study
from hotloop.equivalence import judge as judging
from hotloop.equivalence.judge import Equivalence, Witnesses
from hotloop.errors import StudyMismatch
from hotloop.plan import Plan
from hotloop.report.trial_rows import TIMED
from hotloop.study import Study
from hotloop.trial.order import Order
from hotloop.trial.trial import State, Trial
from hotloop.workshop import examine
from tests import builders
from tests.searching import SECONDS, TWO, PaperJob, found, levers, search, timed_out
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


def test_a_finished_search_is_made_again_without_a_run(tmp_path: Path) -> None:
    """The weights are gone; what was compared with them was judged by evidence that is kept."""
    finished = whole(tmp_path)
    assert not list(tmp_path.glob("reference*"))
    paper = PaperJob(LAW)
    again = search(paper, tmp_path, earlier=finished)
    assert (again.trials, again.found) == (finished.trials, finished.found)
    assert paper.purposes == []


THREE = replace(TWO, only=(*TWO.only, "channels_last"))
WIDER = gains(bf16=1.5, loader_workers=1.2, channels_last=1.3)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """For each judgement: the references whose weights its trials have begun from."""
    seen: list[set[str]] = []

    def judge(candidate: Trial, witnesses: Witnesses, *more: Any) -> Equivalence:
        beside = (witnesses.reference, witnesses.yardstick, candidate)
        seen.append({trial.tied_to for trial in beside})
        return judging.judge(candidate, witnesses, *more)

    monkeypatch.setattr(examine, "judge", judge)
    return seen


def test_another_plan_is_examined_beside_a_reference_of_its_own(
    tmp_path: Path, judged: list[set[str]]
) -> None:
    finished = search(PaperJob(WIDER), tmp_path)
    paper = PaperJob(WIDER)
    record = search(paper, tmp_path, THREE, earlier=finished)
    assert len(levers(found(record).plan or Plan())) == 3  # each was soaked from its own state
    examined = [purpose for purpose in paper.purposes if purpose not in TIMED]
    seeds = [purpose for purpose in examined if purpose.startswith("reseeded")]
    assert examined.count("reference") == 1 and seeds == []  # which begin from no weights
    assert sorted(map(tuple, judged)) == sorted([("reference-1",)] * 2 + [("reference-2",)] * 2)
    once_more = PaperJob(WIDER)
    again = search(once_more, tmp_path, THREE, earlier=record)
    assert (again.trials, again.found) == (record.trials, record.found)
    assert once_more.orders == []


def test_wherever_it_is_stopped_evidence_of_two_references_is_not_mixed(
    tmp_path: Path, judged: list[set[str]]
) -> None:
    def begun(folder: Path) -> Study:
        return search(PaperJob(WIDER), folder)

    paper = PaperJob(WIDER)
    wanted = search(paper, tmp_path / "whole", THREE, earlier=begun(tmp_path / "whole"))
    for number in range(1, len(paper.orders) + 1):
        folder = tmp_path / str(number)
        earlier = begun(folder)
        with pytest.raises(KeyboardInterrupt):
            search(PaperJob(WIDER, stops_at=number), folder, THREE, earlier=earlier)
        again = search(PaperJob(WIDER), folder, THREE, earlier=saved(folder))
        assert found(again).plan == found(wanted).plan
    assert judged and all(len(names) == 1 for names in judged)


def test_a_study_that_does_not_name_its_weights_is_examined_anew(
    tmp_path: Path, judged: list[set[str]]
) -> None:
    finished = whole(tmp_path)
    unnamed = tuple(replace(trial, tied_to="") for trial in finished.trials)
    judged.clear()
    again = search(PaperJob(LAW), tmp_path, earlier=replace(finished, trials=unnamed))
    assert found(again).plan == found(finished).plan
    assert judged and all(names == {"reference-1"} for names in judged)


def test_what_is_run_again_or_not_needed_any_more_stays_in_the_cost(tmp_path: Path) -> None:
    short = search(PaperJob(LAW, answer=stuck), tmp_path, replace(TWO, budget=12 * SECONDS))
    paper = PaperJob(LAW)
    record = search(paper, tmp_path, earlier=short)
    cost = sum(trial.cost for trial in record.trials) + record.unused.seconds
    ran = len(short.trials) + len(paper.orders)
    assert len(record.trials) + record.unused.runs == ran
    before = sum(trial.cost for trial in short.trials)
    assert cost == pytest.approx(before + SECONDS * len(paper.orders))
    assert record.unused.runs > 0
    again = search(PaperJob(LAW), tmp_path, earlier=record)
    assert again.unused == record.unused


def test_stopped_again_it_loses_nothing(tmp_path: Path) -> None:
    """Also not what it had not come to yet when it was stopped."""
    finished = whole(tmp_path)
    lacks_one = replace(finished, trials=(*finished.trials[:2], *finished.trials[3:]))
    stopped(tmp_path, at=1, earlier=lacks_one)
    paper = PaperJob(LAW)
    again = search(paper, tmp_path, earlier=saved(tmp_path))
    assert [one.purpose for one in again.trials] == [one.purpose for one in finished.trials]
    assert paper.purposes == [finished.trials[2].purpose]


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


def test_with_a_little_more_time_each_time_it_comes_to_its_end_all_the_same(tmp_path: Path) -> None:
    """What the reference has saved is kept where the time was over: each start goes on from it."""
    ran: list[str] = []
    record, runs = None, 8
    while record is None or found(record).plan is None:
        paper = PaperJob(WIDER)
        options = replace(TWO, budget=runs * SECONDS)
        record = search(paper, tmp_path, options, earlier=record)
        ran, runs = [*ran, *paper.purposes], runs + 2
        assert runs < 60
    assert ran.count("reference") == 1
    assert not list(tmp_path.glob("reference*"))


def test_of_another_job_it_is_refused_and_the_study_left_alone(tmp_path: Path) -> None:
    finished = whole(tmp_path)
    paper = PaperJob()
    other = builders.job(args=("--lr", "1"))
    with pytest.raises(StudyMismatch, match="is of another job"):
        search(paper, tmp_path, job=other, earlier=finished)
    assert paper.orders == []
    assert saved(tmp_path) == finished
