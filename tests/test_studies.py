from __future__ import annotations

import gzip
import os
from dataclasses import replace
from pathlib import Path

import pytest

from hotloop import codec, studies, study
from hotloop.errors import StudyUnreadable
from hotloop.trial.trial import State
from tests.builders import trial
from tests.report.studies import won


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / ".hotloop"


def keep(base: Path, name: str = "train-1") -> Path:
    folder = base / name
    folder.mkdir(parents=True)
    return study.save(won(), folder)


def sentence(path: Path) -> str:
    with pytest.raises(StudyUnreadable) as caught:
        studies.read(path)
    assert caught.value.sentence.count(". ") == 0 and caught.value.remedy
    return caught.value.sentence


class TestFinding:
    def test_the_newest(self, base: Path) -> None:
        old, new = keep(base, "b"), keep(base, "a")
        os.utime(old, (1, 1))
        assert studies.find(None, base) == new

    def test_by_folder_file_or_name(self, base: Path) -> None:
        path = keep(base)
        assert studies.find(str(path), base) == path
        assert studies.find(str(path.parent), base) == path
        assert studies.find("train-1", base) == path

    @pytest.mark.parametrize("named", [None, "gone", ""])
    def test_there_is_none(self, base: Path, named: str | None) -> None:
        with pytest.raises(StudyUnreadable, match="There is no study"):
            studies.find(named, base)

    def test_a_folder_without_one(self, tmp_path: Path, base: Path) -> None:
        with pytest.raises(StudyUnreadable, match="There is no study in"):
            studies.find(str(tmp_path), base)


class TestReading:
    def test_a_study(self, base: Path) -> None:
        assert studies.read(keep(base)) == won()

    def test_a_compressed_one(self, base: Path) -> None:
        path = keep(base)
        packed = path.with_suffix(".json.gz")
        packed.write_bytes(gzip.compress(path.read_bytes()))
        assert studies.read(packed) == won()
        packed.write_bytes(packed.read_bytes()[:100])
        assert "is cut off" in sentence(packed)

    @pytest.mark.parametrize("keep_bytes", [0, 1, 500])
    def test_cut_off(self, base: Path, keep_bytes: int) -> None:
        path = keep(base)
        path.write_bytes(path.read_bytes()[:keep_bytes])
        assert sentence(path).endswith("is cut off: it ends in the middle.")

    def test_of_a_newer_hotloop(self, base: Path) -> None:
        path = keep(base)
        newer = {"command": "dream", "job_digest": "x", "version": 7, "hotloop": "9.1"}
        path.write_bytes(codec.encode(newer))
        said = sentence(path)
        assert "by hotloop 9.1 in study format 7; this hotloop reads up to 1." in said

    @pytest.mark.parametrize("text", ['{"a": 1}', "[]", '"x"', "7", '{"version": 1, "levers": []}'])
    def test_of_somebody_else(self, base: Path, text: str) -> None:
        path = keep(base)
        path.write_text(text)
        assert sentence(path).endswith("is not a study of hotloop's.")

    def test_no_json(self, base: Path) -> None:
        path = keep(base)
        path.write_text("<html>")
        assert "it is no JSON" in sentence(path)

    def test_edited_by_hand(self, base: Path) -> None:
        path = keep(base)
        path.write_bytes(path.read_bytes().replace(b'"complete"', b'"done"', 1))
        assert "does not hold what a study holds" in sentence(path)

    def test_a_folder(self, base: Path) -> None:
        assert "cannot be read" in sentence(keep(base).parent)


class TestPrinted:
    def test_the_end_of_a_log(self, tmp_path: Path) -> None:
        (tmp_path / "trial-1").mkdir()
        log = tmp_path / "trial-1" / "output.log"
        log.write_text("".join(f"line {number}\n" for number in range(5000)))
        record = replace(won(), trials=(trial(log="trial-1/output.log"),))
        text = studies.printed(record, tmp_path)["trial-1/output.log"]
        assert text.startswith("…\nline ") and text.endswith("line 4999")
        crashed = replace(won(), trials=(trial(log="trial-1/output.log", state=State.CRASHED),))
        assert len(studies.printed(crashed, tmp_path)["trial-1/output.log"]) > 2 * len(text)

    @pytest.mark.parametrize(
        "name", ["../secret.txt", "link", "/etc/hostname", "gone", ".", "a\0b"]
    )
    def test_only_files_of_the_study_are_read(self, tmp_path: Path, name: str) -> None:
        """One edited by hand could name any other file, and the report would show it around."""
        (tmp_path / "secret.txt").write_text("secret")
        folder = tmp_path / "study"
        folder.mkdir()
        (folder / "link").symlink_to(tmp_path / "secret.txt")
        assert studies.printed(replace(won(), trials=(trial(log=name),)), folder) == {}
