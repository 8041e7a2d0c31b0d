from __future__ import annotations

import errno
from pathlib import Path

import pytest

from hotloop import plan
from hotloop.cli import plan_file
from hotloop.errors import StudyNotWritable
from hotloop.plan import Plan
from tests.report.studies import BF16, BOTH


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "study"
    made.mkdir()
    return made


def test_a_new_file_is_written(tmp_path: Path, folder: Path) -> None:
    wanted = tmp_path / "hotloop.json"
    assert plan_file.write(BOTH, wanted, folder) == (wanted, "")
    assert plan.load(wanted) == BOTH
    assert list(folder.iterdir()) == []


def test_an_earlier_plan_is_kept_in_the_study(tmp_path: Path, folder: Path) -> None:
    wanted = tmp_path / "hotloop.json"
    plan.save(Plan((BF16,)), wanted)
    assert plan_file.write(BOTH, wanted, folder) == (wanted, "")
    assert plan.load(wanted) == BOTH
    assert plan.load(folder / "previous-hotloop.json") == Plan((BF16,))


@pytest.mark.parametrize(
    "text",
    [
        "print('mine')",
        '{"version": 1, "name": "my-package"}',
        '{"version": 99, "levers": []}',
        '{"version": 1, "levers": [{"lever": "of another hotloop"}]}',
        "[]",
        "",
    ],
)
def test_another_file_is_left_alone(text: str, tmp_path: Path, folder: Path) -> None:
    wanted = tmp_path / "mine.json"
    wanted.write_text(text)
    written, note = plan_file.write(BOTH, wanted, folder)
    assert wanted.read_text() == text
    assert written == folder / "hotloop.json"
    assert plan.load(written) == BOTH
    assert f"{wanted} is not a plan of hotloop's" in note


def test_a_folder_and_a_link_to_nowhere_are_left_alone(tmp_path: Path, folder: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "nowhere")
    for wanted in (tmp_path, link):
        assert plan_file.write(BOTH, wanted, folder)[0] == folder / "hotloop.json"
    assert not (tmp_path / "nowhere").exists()


def test_where_nothing_can_be_written_the_study_takes_it(tmp_path: Path, folder: Path) -> None:
    written, note = plan_file.write(BOTH, tmp_path / "gone" / "hotloop.json", folder)
    assert written == folder / "hotloop.json"
    assert "could not be written" in note


def test_a_full_disk_is_explained(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(chosen: Plan, path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(plan, "save", full)
    with pytest.raises(StudyNotWritable, match="No space left on device"):
        plan_file.write(BOTH, tmp_path / "hotloop.json", folder)
