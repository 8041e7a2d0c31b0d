from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from hotloop import interpreter
from hotloop.cli.main import main
from hotloop.depth import DepthReport, FunctionRow, FunctionTable
from hotloop.trial import launch
from hotloop.trial.fake import FakeLauncher
from hotloop.trial.order import Order, Watcher
from hotloop.trial.trial import State, Trial
from tests.builders import trial

REPORT = DepthReport(
    "python",
    functions=FunctionTable(20, 1.5, [FunctionRow("~", 0, "<sleep>", 20, 20, 1.0, 1.0)]),
    files=["python.pstats"],
    problems=["No sampled lines: too soon."],
)


class Launcher(FakeLauncher):
    def launch(self, order: Order, watcher: Watcher) -> Trial:
        order.folder.mkdir()
        (order.folder / "output.log").touch()
        return super().launch(order, watcher)


@pytest.fixture
def launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(interpreter, "require_torch", lambda python, cwd: None)
    (tmp_path / "train.py").write_text("")

    def with_these(*trials: Trial) -> Launcher:
        launcher = Launcher(trials)
        monkeypatch.setattr(launch, "ProcessLauncher", lambda: launcher)
        return launcher

    return with_these


def profile(*words: str) -> int:
    return main(["profile", "--no-look", "--python", sys.executable, *words, "train.py"])


def test_tables_stand_below_the_screen(launched: Any, capsys: pytest.CaptureFixture[str]) -> None:
    launcher = launched(trial(), trial(deep=REPORT))
    assert profile("--depth", "python") == 0
    assert [order.purpose for order in launcher.orders] == ["", "depth-python"]
    out, err = capsys.readouterr()
    screen, _, depth = out.partition("depth python")
    assert "400 samples/s" in screen
    assert "<sleep>" in depth and "No sampled lines: too soon." in depth
    assert "python -m pstats .hotloop/train-" in depth
    assert "trial-2/python.pstats" in depth
    assert "profiling it, depth python" in err


def test_tables_as_json(launched: Any, capsys: pytest.CaptureFixture[str]) -> None:
    launched(trial(), trial(deep=REPORT))
    assert profile("--json", "--depth", "python") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["depth"]["functions"]["rows"][0]["name"] == "<sleep>"
    assert Path(told["files"]["python.pstats"]).parent.name == "trial-2"


def test_quick_is_one_trial(launched: Any, capsys: pytest.CaptureFixture[str]) -> None:
    launcher = launched(trial())
    assert profile("--json") == 0
    assert len(launcher.orders) == 1
    assert "depth" not in json.loads(capsys.readouterr().out)


def test_a_job_that_fails_is_not_profiled(
    launched: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    launcher = launched(trial(state=State.TIMED_OUT, reason="Stopped.", measurement=None))
    assert profile("--depth", "kernel") != 0
    assert len(launcher.orders) == 1


def test_a_failure_under_the_profiler_leaves_the_screen(
    launched: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    launched(trial(), trial(state=State.CRASHED, reason="It failed.", measurement=None))
    assert profile("--depth", "torch") == 0
    out = capsys.readouterr().out
    assert "400 samples/s" in out
    assert "The run under the profiler did not come to its end. It failed." in out
