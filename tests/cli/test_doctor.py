from __future__ import annotations

import json
from typing import Any

import pytest

from hotloop.cli.main import main, parser
from hotloop.doctor import examination
from hotloop.errors import InterpreterNotFound, UsageError
from tests.report.test_doctor_rows import found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    asked: list[Any] = []

    def examine(python: str, paths: tuple[str, ...], **options: Any) -> Any:
        asked.append((paths, options["remeasure"]))
        options["begins"]()
        options["watch"]()
        return found()

    monkeypatch.setattr(examination, "examine", examine)
    return asked


def test_defaults() -> None:
    chosen = parser().parse_args(["doctor"])
    assert (chosen.json, chosen.python, chosen.remeasure) == (False, None, False)
    assert chosen.paths == ["."]


def test_warnings_are_no_failure(
    asked: list[Any], capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    assert main(["doctor", "--remeasure", str(tmp_path)]) == 0
    assert asked == [((str(tmp_path),), True)]
    out, err = capsys.readouterr()
    assert "1 warning" in out
    assert err.startswith("hotloop: measuring ") and err.count("\n") == 1


def test_as_json(asked: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["version"] == 1
    assert told["roof"]["matrix_flops"]["bfloat16"] == 742e12
    assert told["roof"]["disk_read"] is None
    assert {check["status"] for check in told["checks"]} == {"ok", "unknown", "warning"}
    assert set(told) == {"version", "machine", "roof", "datasheet", "state", "checks"}


def test_a_folder_that_is_not_there(asked: list[Any], tmp_path: Any) -> None:
    assert main(["doctor", str(tmp_path / "gone")]) == UsageError.exit_code
    assert asked == []


def test_an_interpreter_that_is_not_there(asked: list[Any], tmp_path: Any) -> None:
    assert main(["doctor", "--python", str(tmp_path / "no")]) == InterpreterNotFound.exit_code
    assert asked == []


def test_an_interruption(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import os
    import signal

    def examine(python: str, paths: tuple[str, ...], **options: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        options["watch"]()

    monkeypatch.setattr(examination, "examine", examine)
    assert main(["doctor"]) == 143
    assert capsys.readouterr().err == "hotloop: Interrupted.\n"
