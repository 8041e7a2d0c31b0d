from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from hotloop import interpreter
from hotloop.cli.main import main
from hotloop.errors import FailedInTraining, NothingMeasured, StudyNotWritable, TimedOut
from hotloop.trial import launch
from hotloop.trial.fake import FakeLauncher
from hotloop.trial.order import Glimpse, Order, Watcher
from hotloop.trial.result import Failure
from hotloop.trial.trial import State, Trial
from tests.builders import measurement, training, trial

TRACEBACK = "Traceback (most recent call last):\n\x1b[31mValueError: no\x1b[0m\n"


class Launcher(FakeLauncher):
    """Also leaves a log, and a signal if told to."""

    def __init__(self, ending: Trial, printed: str = "", sends: int | None = None) -> None:
        super().__init__([ending])
        self._printed = printed
        self._sends = sends

    def launch(self, order: Order, watcher: Watcher) -> Trial:
        order.folder.mkdir()
        (order.folder / "output.log").write_text(self._printed)
        if self._sends is not None:
            signal.raise_signal(self._sends)
        try:
            return super().launch(order, watcher)
        except KeyboardInterrupt:
            return trial(number=1, state=State.INTERRUPTED, reason="Stopped.", measurement=None)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(interpreter, "require_torch", lambda python, cwd: None)
    (tmp_path / "train.py").write_text("")
    return tmp_path


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch) -> Any:
    def with_this(*args: Any, **options: Any) -> Launcher:
        launcher = Launcher(*args, **options)
        monkeypatch.setattr(launch, "ProcessLauncher", lambda: launcher)
        return launcher

    return with_this


def profile(*words: str) -> int:
    return main(["profile", "--no-look", "--python", sys.executable, *words])


def study(project: Path) -> dict[str, Any]:
    (path,) = project.glob(".hotloop/*/study.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_a_screen(project: Path, ending: Any, capsys: pytest.CaptureFixture[str]) -> None:
    launcher = ending(trial())
    assert profile("--steps", "30", "--timeout", "2m", "train.py", "--lr", "a b") == 0
    order = launcher.orders[0]
    assert (order.stop.steps, order.limit_seconds) == (30, 120.0)
    assert order.job.argv()[1:] == ["train.py", "--lr", "a b"]
    out, err = capsys.readouterr()
    assert "400 samples/s" in out
    assert "next       hotloop optimize train.py --lr 'a b'" in out
    assert "study      .hotloop/train-" in out
    assert err == "hotloop: measuring train.py …\n"
    assert study(project)["trials"][0]["state"] == "complete"


def test_as_json(project: Path, ending: Any, capsys: pytest.CaptureFixture[str]) -> None:
    ending(trial())
    assert profile("--json", "train.py") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["version"] == 1
    assert told["figures"]["samples_per_second"] == pytest.approx(400)
    assert told["memory"]["host_peak"] == 512 * 2**20
    assert told["memory"]["device_peak_allocated"] is None
    assert Path(told["study"]).is_file()


def test_a_failure_is_shown_as_the_script_showed_it(
    project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = trial(
        state=State.CRASHED,
        reason="The script failed after 20 steps: ValueError.",
        failure=Failure("ValueError", "no"),
        exit_status=1,
    )
    ending(failed, printed="epoch 1\n" + TRACEBACK)
    assert profile("train.py") == FailedInTraining.exit_code
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback (most recent call last):\nValueError: no\n\nhotloop: The script" in err
    assert study(project)["trials"][0]["state"] == "crashed"


def test_a_failure_as_json_is_on_both(
    project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    ending(trial(state=State.TIMED_OUT, reason="It took too long.", measurement=None))
    assert profile("--json", "train.py") == TimedOut.exit_code
    out, err = capsys.readouterr()
    error = json.loads(out)["error"]
    assert (error["code"], error["sentence"]) == (TimedOut.exit_code, "It took too long.")
    assert "It took too long." in err


def test_too_few_steps_are_no_figures(project: Path, ending: Any) -> None:
    ending(trial(measurement=measurement(training(1).events)))
    assert profile("train.py") == NothingMeasured.exit_code


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_cleanly(
    number: signal.Signals, project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(number)
    ending(trial(), sends=number)
    assert profile("train.py") == 128 + number
    assert "Interrupted" in capsys.readouterr().err
    assert study(project)["trials"][0]["state"] == "interrupted"
    assert signal.getsignal(number) is before


def test_a_hostile_name_cannot_reach_the_terminal(
    project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "x\x1b[31m[red].py"
    (project / name).write_text("")
    ending(trial(), sends=signal.SIGINT)
    assert profile(name) == 130
    ending(trial())
    assert profile(name) == 0
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert "x[red].py" in out


def test_a_name_that_is_no_text(
    project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bytes that are not UTF-8 reach Python as halves of surrogate pairs."""
    name = b"caf\xe9.py".decode("utf-8", "surrogateescape")
    try:
        (project / name).write_text("")
    except OSError:
        pytest.skip("this file system takes no such name")
    ending(trial())
    assert profile(name, name) == 0
    assert "caf?.py" in capsys.readouterr().out
    ending(trial())
    assert profile("--json", name) == 0
    assert json.loads(capsys.readouterr().out)["version"] == 1


def test_where_no_study_can_be_kept(project: Path, ending: Any) -> None:
    launcher = ending(trial())
    assert profile("--study", "train.py/below", "train.py") == StudyNotWritable.exit_code
    assert launcher.orders == []


def test_the_scripts_output_goes_through_if_asked(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    class Printing(Launcher):
        def launch(self, order: Order, watcher: Watcher) -> Trial:
            watcher(Glimpse(1.0, 3, None, b"epoch 1\r\n"))
            return super().launch(order, watcher)

    monkeypatch.setattr(launch, "ProcessLauncher", lambda: Printing(trial()))
    assert profile("--show-output", "train.py") == 0
    out, err = capfdbinary.readouterr()
    assert b"epoch 1" in err
    assert b"epoch 1" not in out


class TestRepeat:
    def many(self, monkeypatch: pytest.MonkeyPatch, *endings: Trial) -> None:
        monkeypatch.setattr(launch, "ProcessLauncher", lambda: FakeLauncher(list(endings)))

    def test_several_processes_are_timed(
        self, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.many(monkeypatch, trial(), trial(), trial())
        words = ["profile", "--no-look", "--repeat", "3", "--python", sys.executable, "train.py"]
        assert main(words) == 0
        out, err = capsys.readouterr()
        assert "processes  3: a step takes 20.0 ms, from 20.0 ms to 20.0 ms" in out
        assert "timing it again, 3 of 3" in err
        (path,) = project.glob(".hotloop/*/study.json")
        assert len(json.loads(path.read_text())["trials"]) == 3

    def test_one_that_fails_is_the_last(
        self, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        crashed = trial(state=State.CRASHED, reason="It failed.", measurement=None)
        self.many(monkeypatch, trial(), crashed)
        words = ["profile", "--no-look", "--repeat", "5", "--python", sys.executable, "train.py"]
        assert main(words) == 0
        assert "processes" not in capsys.readouterr().out
