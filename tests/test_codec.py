from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from hotloop import codec
from hotloop.errors import StudyNotWritable
from hotloop.measurement import Losses, Measurement
from hotloop.study import Study
from hotloop.trial.result import ChildResult, Ended, Failure
from hotloop.trial.trial import Trial
from tests.builders import job, machine, measurement, trial


def test_values_come_back_as_they_were() -> None:
    record = Study("profile", job(), "0123", machine(), "now", (trial(), trial(number=2)))
    assert codec.decode(codec.encode(record), Study) == record


def test_what_a_child_writes_with_json_is_read_here() -> None:
    losses = Losses(event=[3], value=[None], not_finite=1)
    result = ChildResult(Ended.ENOUGH, Failure("E", "no"), measurement(losses=losses))
    assert codec.decode(json.dumps(asdict(result)).encode(), ChildResult) == result


def test_file_names_need_not_be_utf8(tmp_path: Path) -> None:
    """Python carries the odd byte of a name as a lone surrogate, and so does JSON's escape."""
    odd = os.fsdecode(b"caf\xe9.pt")
    result = ChildResult(Ended.SCRIPT, Failure("FileNotFoundError", odd))
    assert codec.decode(json.dumps(asdict(result)).encode(), ChildResult) == result
    value = trial(log=odd)
    codec.write(tmp_path / "trial.json", value)
    assert codec.decode((tmp_path / "trial.json").read_bytes(), Trial) == value
    assert codec.decode(codec.encode(value), Trial) == value


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b'{"ended": "enough"', b'{"ended": "never"}', b'{"ended": 3}', b"[]", b"\xff"],
)
def test_what_does_not_fit_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError):
        codec.decode(text, ChildResult)


def test_an_older_measurement_lacks_fields() -> None:
    assert codec.decode(b"{}", Measurement) == Measurement()


class TestWrite:
    def test_is_readable_by_people(self, tmp_path: Path) -> None:
        codec.write(tmp_path / "a.json", {"a": [1], "b": "ö"})
        text = (tmp_path / "a.json").read_text(encoding="utf-8")
        assert json.loads(text) == {"a": [1], "b": "ö"}
        assert len(text.splitlines()) > 3

    def test_leaves_nothing_but_the_file(self, tmp_path: Path) -> None:
        codec.write(tmp_path / "a.json", 1)
        codec.write(tmp_path / "a.json", 2)
        assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
        assert (tmp_path / "a.json").read_text() == "2"

    def test_a_failure_leaves_the_file_as_it_was(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        codec.write(tmp_path / "a.json", 1)

        def full(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(StudyNotWritable, match="No space left on device"):
            codec.write(tmp_path / "a.json", 2)
        assert (tmp_path / "a.json").read_text() == "1"

    def test_says_where_it_cannot(self, tmp_path: Path) -> None:
        with pytest.raises(StudyNotWritable, match="No such file"):
            codec.write(tmp_path / "gone" / "a.json", 1)
