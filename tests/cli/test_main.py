from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hotloop import __version__
from hotloop.cli import commands
from hotloop.cli.main import main, parser
from hotloop.errors import FailedInTraining, UsageError

HEAVY = ("msgspec", "rich", "psutil", "pynvml", "numpy", "torch")


def test_without_a_word_it_introduces_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    out, err = capsys.readouterr()
    shown = [name for name in commands.SUMMARIES if f"hotloop {name} " in out]
    assert shown == ["optimize", "run", "report"]  # what people need; --help has all
    assert err == ""


@pytest.mark.parametrize(
    "words", [["--version"], ["--help"], *([c, "--help"] for c in commands.SUMMARIES)]
)
def test_help_and_version(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith(f"hotloop {__version__}" if words == ["--version"] else "usage: hotloop")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["fly"], "Argument COMMAND: invalid choice: 'fly'"),
        (["--fly"], "--fly"),
        (["profile", "--fly", "train.py"], "--fly"),
        (["profile"], "Which script?"),
        (["run", "-m"], "Which script?"),
        (["profile", "--steps", "0", "train.py"], "'0' is not a positive number of steps"),
        (["profile", "--steps", "x", "train.py"], "'x' is not a positive number of steps"),
        (["profile", "--timeout", "soon", "train.py"], "'soon' is not a time"),
        (["profile", "--timeout"], "expected one argument"),
        (["profile", "--stud", "x", "train.py"], "--stud"),
        (["optimize"], "Which script?"),
        (["optimize", "--budget", "soon", "train.py"], "'soon' is not a time"),
        (["optimize", "--effect", "any", "train.py"], "invalid choice: 'any'"),
        (["optimize", "--objective", "fun", "train.py"], "invalid choice: 'fun'"),
        (["optimize", "--only", "tf32,fly", "train.py"], "There is no optimisation fly"),
        (["verify", "train.py"], "--plan"),
        (["verify", "--plan", "p", "--steps", "0", "train.py"], "'0' is not a positive number"),
    ],
)
def test_a_wrong_line_is_explained(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == UsageError.exit_code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("hotloop: ")
    assert says in err
    assert err.count("\n") == 1


class TestWords:
    @pytest.mark.parametrize(
        ("text", "seconds"),
        [("90", 90.0), ("90s", 90.0), ("10m", 600.0), ("1h", 3600.0), ("0.5m", 30.0)],
    )
    def test_times(self, text: str, seconds: float) -> None:
        found = parser().parse_args(["profile", "--timeout", text, "train.py"])
        assert found.timeout == seconds

    @pytest.mark.parametrize("text", ["0", "-3", "m", "", "nan", "inf", "1d", "infs", "1e999"])
    def test_what_is_no_time(self, text: str) -> None:
        with pytest.raises(UsageError):
            parser().parse_args(["profile", f"--timeout={text}", "train.py"])

    def test_defaults(self) -> None:
        found = parser().parse_args(["profile", "train.py"])
        assert (found.steps, found.timeout, found.json) == (None, 600.0, False)
        assert (found.study, found.show_output, found.python) == (".hotloop", False, None)


def test_only_the_command_that_is_asked_for_is_put_together() -> None:
    both = [["profile", "train.py"], ["report"]]
    assert all(parser(None, words[0]).parse_args(words) for words in both)
    with pytest.raises(UsageError):
        parser(None, "report").parse_args(["profile", "--steps", "3", "train.py"])


class TestExplaining:
    def fail(self, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
        def run(arguments: Any) -> int:
            raise error

        monkeypatch.setattr(commands.module("run"), "run", run)
        return main(["run", "train.py"])

    def test_what_the_script_said_comes_first(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        error = FailedInTraining("It failed.", "Try again.", detail="ValueError: no\n\n")
        assert self.fail(monkeypatch, error) == FailedInTraining.exit_code
        assert capsys.readouterr().err == "ValueError: no\n\nhotloop: It failed. Try again.\n"

    def test_no_escape_reaches_the_terminal(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        hostile = "\x1b[31mred\x1b]0;title\x07"
        self.fail(monkeypatch, FailedInTraining(hostile, hostile, detail=hostile))
        assert capsys.readouterr().err == "red\n\nhotloop: red red\n"

    def test_a_script_that_is_not_there(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert main(["profile", "gone\x1b[2J.py"]) == 81
        assert "There is no file gone.py." in capsys.readouterr().err

    def test_ctrl_c(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.fail(monkeypatch, KeyboardInterrupt()) == 130
        assert capsys.readouterr().err == "hotloop: Interrupted.\n"


def python(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_it_starts_without_anything_heavy() -> None:
    look = (
        "import sys; from hotloop.cli.main import parser; parser();"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    assert python("-c", look).stdout == "[]\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_any_terminal_can_be_written_to(encoding: str) -> None:
    done = python("-m", "hotloop", "profile", "--help", PYTHONIOENCODING=encoding)
    assert done.returncode == 0
    assert "usage: hotloop profile" in done.stdout


def test_a_reader_who_has_left_is_no_error() -> None:
    done = subprocess.run(
        f"{sys.executable} -m hotloop --help | true; exit ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode in (0, 141)  # it may have been quicker
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_behind_standard_output_is_told_in_a_sentence() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "hotloop"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 94
    assert done.stderr.count("\n") == 1 and "standard output cannot be written" in done.stderr


def test_closed_streams_are_no_error() -> None:
    command = f"exec {shlex.quote(sys.executable)} -m hotloop --version >&- 2>&-"
    assert subprocess.run(["sh", "-c", command]).returncode == 0
