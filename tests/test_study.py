from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from hotloop import codec, study
from hotloop.errors import StudyNotWritable
from hotloop.study import Study
from tests.builders import job, machine, trial


@pytest.fixture
def same_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "strftime", lambda shape: "20260101-000000")


def test_grows_by_trials_without_changing() -> None:
    empty = study.begin("profile", job(), machine())
    grown = empty.with_trial(trial(number=1)).with_trial(trial(number=2))
    assert empty.trials == ()
    assert [one.number for one in grown.trials] == [1, 2]
    assert grown.job_digest == job().digest()


def test_is_saved_whole(tmp_path: Path) -> None:
    record = study.begin("profile", job(), machine()).with_trial(trial())
    path = study.save(record, tmp_path)
    assert path == tmp_path / "study.json"
    assert codec.decode(path.read_bytes(), Study) == record
    document = json.loads(path.read_text())
    assert document["version"] == study.VERSION
    assert document["hotloop"]


class TestFolder:
    def test_is_named_after_the_job(self, tmp_path: Path) -> None:
        folder = study.new_folder(tmp_path / "deep" / ".hotloop", job())
        assert folder.is_dir()
        assert folder.name.startswith("train-2")

    def test_is_hidden_from_git(self, tmp_path: Path) -> None:
        study.new_folder(tmp_path, job())
        assert (tmp_path / ".gitignore").read_text() == "*\n"

    def test_leaves_the_users_gitignore_alone(self, tmp_path: Path) -> None:
        (tmp_path / ".gitignore").write_text("mine\n")
        study.new_folder(tmp_path, job())
        assert (tmp_path / ".gitignore").read_text() == "mine\n"

    def test_two_in_the_same_second(self, tmp_path: Path, same_second: None) -> None:
        made = {study.new_folder(tmp_path, job()) for _ in range(3)}
        assert len(made) == 3

    def test_another_process_may_be_quicker(
        self, tmp_path: Path, same_second: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        study.new_folder(tmp_path, job())
        monkeypatch.setattr(Path, "exists", lambda path: False)  # as it was a moment ago
        assert study.new_folder(tmp_path, job()).name == "train-20260101-000000-1"

    def test_where_nothing_can_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(StudyNotWritable, match="No study can be kept"):
            study.new_folder(tmp_path / "file", job())
        with pytest.raises(StudyNotWritable, match="Not a directory"):
            study.new_folder(tmp_path / "file" / "below", job())
