from __future__ import annotations

from pathlib import Path

import pytest

from hotloop import codec
from hotloop.inspection import Inspection, Operators
from hotloop.plan import Plan
from hotloop.profiling import diagnosed, look, looked_into, profile
from hotloop.roof import Roof
from hotloop.study import Study
from hotloop.trial.fake import FakeLauncher
from hotloop.trial.order import Glimpse, Order, Watcher
from hotloop.trial.spec import StopRule
from hotloop.trial.trial import State, Trial
from tests.builders import job, trial


class Watching:
    def __init__(self) -> None:
        self.glimpses: list[Glimpse] = []

    def __call__(self, glimpse: Glimpse) -> None:
        self.glimpses.append(glimpse)


def saved(folder: Path) -> Study:
    return codec.decode((folder / "study.json").read_bytes(), Study)


def test_one_trial_of_the_job_as_it_is(tmp_path: Path) -> None:
    launcher = FakeLauncher([trial()])
    watching = Watching()
    stop = StopRule(steps=12)
    record = profile(job(), Plan(), stop, 90.0, tmp_path, launcher, watching)
    assert launcher.orders == [Order(1, job(), Plan(), stop, 90.0, tmp_path / "trial-1")]
    assert [one.number for one in record.trials] == [1]
    assert len(watching.glimpses) == 1
    assert saved(tmp_path) == record


def test_the_study_is_there_before_the_trial(tmp_path: Path) -> None:
    seen: list[Study] = []

    class Looking(FakeLauncher):
        def launch(self, order: Order, watcher: Watcher) -> Trial:
            seen.append(saved(tmp_path))
            return super().launch(order, watcher)

    record = profile(job(), Plan(), StopRule(), 90.0, tmp_path, Looking([trial()]), Watching())
    assert len(seen) == 1
    assert seen[0].trials == ()
    assert seen[0].with_trial(record.trials[0]) == record


@pytest.mark.parametrize("state", [State.INTERRUPTED, State.CRASHED, State.TIMED_OUT])
def test_a_trial_that_did_not_complete_is_recorded_too(state: State, tmp_path: Path) -> None:
    ended = trial(state=state, reason="It ended.", measurement=None, exit_status=None)
    record = profile(job(), Plan(), StopRule(), 90.0, tmp_path, FakeLauncher([ended]), Watching())
    assert record.trials[0].state is state
    assert saved(tmp_path) == record


class TestLookingIntoIt:
    LOOKED = trial(inspection=Inspection(steps=4))

    def test_one_more_trial_of_what_was_timed(self, tmp_path: Path) -> None:
        launcher = FakeLauncher([trial(), self.LOOKED])
        record = profile(job(), Plan(), StopRule(), 90.0, tmp_path, launcher, Watching())
        record = look(record, job(), 60.0, tmp_path, launcher, Watching())
        order = launcher.orders[1]
        assert (order.number, order.purpose, order.limit_seconds) == (2, "look", 60.0)
        assert order.look is not None and order.folder == tmp_path / "trial-2"
        assert looked_into(record) == record.trials[1]
        assert saved(tmp_path) == record

    def test_a_script_that_ends_meanwhile_is_looked_into_again(self, tmp_path: Path) -> None:
        short = trial(inspection=Inspection(steps=4), ran_out=True)
        whole = trial(inspection=Inspection(steps=4, operators=Operators(steps=2)), ran_out=True)
        launcher = FakeLauncher([trial(), short, whole])
        record = profile(job(), Plan(), StopRule(), 90.0, tmp_path, launcher, Watching())
        record = look(record, job(), 60.0, tmp_path, launcher, Watching())
        first, second = (order.look for order in launcher.orders[1:])
        assert first is not None and second is not None
        assert second.steps + second.warm_up < first.steps + first.warm_up
        assert looked_into(record) == record.trials[2]

    def test_but_not_for_ever(self, tmp_path: Path) -> None:
        short = trial(inspection=Inspection(steps=4), ran_out=True)
        launcher = FakeLauncher([trial(), short, short, short])
        record = profile(job(), Plan(), StopRule(), 90.0, tmp_path, launcher, Watching())
        record = look(record, job(), 60.0, tmp_path, launcher, Watching())
        assert len(record.trials) == 3

    def test_what_was_not_timed_is_not_looked_into(self, tmp_path: Path) -> None:
        ended = trial(state=State.CRASHED, reason="It ended.")
        launcher = FakeLauncher([ended])
        record = profile(job(), Plan(), StopRule(), 90.0, tmp_path, launcher, Watching())
        assert look(record, job(), 60.0, tmp_path, launcher, Watching()) == record

    def test_a_diagnosis_is_kept_with_the_roof_it_was_read_against(self, tmp_path: Path) -> None:
        launcher = FakeLauncher([trial(), self.LOOKED])
        record = profile(job(), Plan(), StopRule(), 90.0, tmp_path, launcher, Watching())
        record = look(record, job(), 60.0, tmp_path, launcher, Watching())
        roof = Roof(threads=2)
        record = diagnosed(record, lambda: roof, tmp_path)
        assert record.roof == roof
        assert record.diagnosis is not None and record.diagnosis.verdict
        assert len(record.diagnosis.checklist) == 9
        assert saved(tmp_path) == record

    def test_without_a_look_and_a_roof_there_is_still_a_verdict(self, tmp_path: Path) -> None:
        launcher = FakeLauncher([trial(), trial(state=State.CRASHED, reason="No.")])
        record = profile(job(), Plan(), StopRule(), 90.0, tmp_path, launcher, Watching())
        record = look(record, job(), 60.0, tmp_path, launcher, Watching())
        record = diagnosed(record, lambda: None, tmp_path)
        assert looked_into(record) is None
        assert record.diagnosis is not None and record.diagnosis.verdict
