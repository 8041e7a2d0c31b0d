from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from hotloop import codec, study
from hotloop.errors import StudyMismatch, StudyNotWritable
from hotloop.job import ScriptJob
from hotloop.study import Found, Options, Study
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


class TestLoad:
    def test_gives_back_what_was_saved(self, tmp_path: Path) -> None:
        found = Found(Options(only=("bf16",), budget=60.0), verdict="Nothing.")
        record = study.begin("optimize", job(), machine(), found).with_trial(trial())
        assert study.load(study.save(record, tmp_path)) == record

    @pytest.mark.parametrize("text", ["", "{", "[]", '{"command": 3}'])
    def test_of_what_is_no_study_is_explained(self, text: str, tmp_path: Path) -> None:
        path = tmp_path / "study.json"
        path.write_text(text)
        with pytest.raises(StudyMismatch, match="not a study that this hotloop can read"):
            study.load(path)

    def test_of_what_is_not_there_is_explained(self, tmp_path: Path) -> None:
        with pytest.raises(StudyMismatch, match="study"):
            study.load(tmp_path / "study.json")


class TestLatest:
    @staticmethod
    def kept(base: Path, name: str, age: int, command: str, of: ScriptJob | None = None) -> Path:
        folder = base / name
        folder.mkdir()
        path = study.save(study.begin(command, of or job(), machine()), folder)
        os.utime(path, (1_000_000 - age, 1_000_000 - age))
        return folder

    def test_is_the_newest_search_of_this_job(self, tmp_path: Path) -> None:
        self.kept(tmp_path, "train-1", 30, "optimize")
        newest = self.kept(tmp_path, "train-2", 20, "optimize")
        self.kept(tmp_path, "train-3", 10, "profile")
        self.kept(tmp_path, "train-4", 5, "optimize", job(args=("--lr", "1")))
        self.kept(tmp_path, "train-5", 40, "optimize")
        assert study.latest(tmp_path, job()) == newest

    def test_passes_over_what_cannot_be_read(self, tmp_path: Path) -> None:
        good = self.kept(tmp_path, "train-1", 30, "optimize")
        (tmp_path / "train-2").mkdir()
        (tmp_path / "train-2" / "study.json").write_text("half a st")
        assert study.latest(tmp_path, job()) == good

    def test_of_a_script_with_an_odd_name(self, tmp_path: Path) -> None:
        odd = job(target="train[1].py")
        kept = self.kept(tmp_path, "train[1]-1", 30, "optimize", odd)
        assert study.latest(tmp_path, odd) == kept

    def test_where_there_is_none(self, tmp_path: Path) -> None:
        self.kept(tmp_path, "train-1", 30, "verify")
        for base in (tmp_path, tmp_path / "nowhere"):
            with pytest.raises(StudyMismatch, match="no search of this job"):
                study.latest(base, job())
