from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from hotloop.cli.main import main
from hotloop.errors import InterpreterNotFound, PlanError, ScriptNotFound


class Replaced(BaseException):
    """This process has become another."""


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    commands: list[list[str]] = []

    def execute(path: str, words: list[str], environment: dict[str, str]) -> None:
        assert path == words[0]
        assert environment["MINE"] == "1"
        commands.append(words)
        raise Replaced

    monkeypatch.setattr(os, "execve", execute)
    monkeypatch.setenv("MINE", "1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    return commands


def run(*words: str) -> int:
    return main(["run", "--python", sys.executable, *words])


def test_becomes_the_script(became: list[list[str]]) -> None:
    with pytest.raises(Replaced):
        run("train.py", "--lr", "1", "--plan", "theirs")
    assert became == [[sys.executable, "train.py", "--lr", "1", "--plan", "theirs"]]


def test_or_the_module(became: list[list[str]]) -> None:
    with pytest.raises(Replaced):
        run("-m", "pkg.train", "-x")
    assert became == [[sys.executable, "-m", "pkg.train", "-x"]]


def test_says_that_it_started(became: list[list[str]], tmp_path: Path) -> None:
    with pytest.raises(Replaced):
        run("--status", "status.json", "train.py")
    assert json.loads((tmp_path / "status.json").read_text()) == {"started": True}


def test_or_that_it_did_not(
    became: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: str, words: list[str], environment: dict[str, str]) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "execve", refused)
    assert run("--status", "status.json", "train.py") == InterpreterNotFound.exit_code
    assert not (tmp_path / "status.json").exists()


def test_what_an_earlier_run_said_is_forgotten(became: list[list[str]], tmp_path: Path) -> None:
    (tmp_path / "status.json").write_text('{"started": true}')
    assert run("--status", "status.json", "gone.py") == ScriptNotFound.exit_code
    assert not (tmp_path / "status.json").exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("gone.py",), ScriptNotFound.exit_code),
        (("--plan", "gone.json", "train.py"), PlanError.exit_code),
        (("--python", "no-such-python", "train.py"), InterpreterNotFound.exit_code),
    ],
)
def test_otherwise_nothing_is_started(
    words: tuple[str, ...], code: int, became: list[list[str]]
) -> None:
    assert run(*words) == code
    assert became == []


def test_an_empty_plan_changes_nothing(became: list[list[str]], tmp_path: Path) -> None:
    (tmp_path / "hotloop.json").write_text('{"version": 1, "levers": []}')
    with pytest.raises(Replaced):
        run("--plan", "hotloop.json", "train.py")
    assert became == [[sys.executable, "train.py"]]


def test_a_plan_it_cannot_keep_is_refused(became: list[list[str]], tmp_path: Path) -> None:
    plan: dict[str, Any] = {"version": 1, "levers": [{"lever": "warp"}]}
    (tmp_path / "hotloop.json").write_text(json.dumps(plan))
    assert run("--plan", "hotloop.json", "train.py") == PlanError.exit_code
    assert became == []
