from __future__ import annotations

import json
from pathlib import Path

import pytest

from hotloop import study
from hotloop.cli.main import main
from tests.test_comparing import profiled


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, ms in {"old": (10, 10.1, 9.9), "new": (12, 12.1, 11.9), "one": (10,)}.items():
        folder = Path(".hotloop", name)
        folder.mkdir(parents=True)
        study.save(profiled(*ms), folder)
    other = Path(".hotloop", "other")
    other.mkdir()
    study.save(profiled(10, hotloop="9"), other)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["old", "new"], 1),
        (["old", "new", "--threshold", "50%"], 0),
        (["old", "new", "--threshold", "0.1"], 1),
        (["new", "old"], 0),
        (["one", "one"], 0),
        (["one", "one", "--strict"], 1),
        (["one", "one", "--before", "old", "--after", "new"], 0),
        (["old", "other"], 102),
        (["old", "other", "--anyway"], 0),
        (["old", "gone"], 101),
        (["old"], 80),
        (["old", "new", "--threshold", "much"], 80),
        (["old", "new", "--threshold", "5"], 80),
    ],
)
def test_it_ends_so_that_ci_can_gate_on_it(project: Path, words: list[str], code: int) -> None:
    assert main(["compare", *words]) == code


def test_it_says_so(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["compare", "old", ".hotloop/new/study.json"])
    out = capsys.readouterr().out
    assert "Slower: a step takes 1.200× [1." in out
    assert "a step       10.00 ms → 12.0 ms" in out
    assert "3 from 9.90 ms to 10.1 ms" in out


def test_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "old", "new", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["beyond"] is True and told["version"] == 1
    assert told["compared"]["verdict"] == "slower"
    assert told["compared"]["low"] < told["compared"]["ratio"] < told["compared"]["high"]


def test_json_of_what_cannot_be_compared(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "old", "other", "--json"]) == 102
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["code"] == 102
    assert "another hotloop" in err and err.count("\n") == 1


def test_processes_that_have_nothing_in_common(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wild = Path(".hotloop", "wild")
    wild.mkdir()
    study.save(profiled(1, 50, 54), wild)
    assert main(["compare", "old", "wild"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "processes of one side differ by 54.0×, too much to compare" in out
    assert main(["compare", "old", "wild", "--strict"]) == 1
