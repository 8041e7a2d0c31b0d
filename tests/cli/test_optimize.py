from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotloop import codec, interpreter, plan, study
from hotloop import optimization as library
from hotloop.cli import optimize
from hotloop.cli.main import main, parser
from hotloop.diagnose.diagnosis import Diagnosis
from hotloop.diagnose.numbers import Numbers
from hotloop.errors import FailedInTraining, FolderBusy, UsageError
from hotloop.levers.base import Effect
from hotloop.optimization import OUT_OF_TIME
from hotloop.plan import Plan
from hotloop.search.climb import Climb
from hotloop.study import Options, Study
from hotloop.trial.order import Glimpse
from hotloop.workshop.choosing import BLIND
from hotloop.workshop.watching import Audience, Outlook
from tests.report.studies import BOTH, lost, won

OUTLOOK = Outlook((3, 9), (60.0, 300.0))


class Search:
    """In place of the real one: tells the audience a made-up study, and notes how it was asked."""

    def __init__(self, ending: Study, before: Callable[[], None] = lambda: None) -> None:
        self._ending = ending
        self._before = before
        self.asked: dict[str, Any] = {}

    def __call__(
        self,
        job: Any,
        options: Options,
        limit_seconds: float,
        folder: Path,
        launcher: Any,
        audience: Audience,
        dry_run: bool = False,
        earlier: Study | None = None,
        roof: object = None,
    ) -> Study:
        self.asked = {"job": job, "options": options, "limit": limit_seconds}
        self.asked |= {"folder": folder, "dry_run": dry_run, "earlier": earlier}
        study.save(self._ending, folder)
        baseline, *others = self._ending.trials
        audience.began(1, "baseline", Plan())
        self._before()
        audience.glimpsed(Glimpse(1.0, 3, None, b""))
        audience.ended(baseline, replace(self._ending, trials=(baseline,)))
        audience.planned(replace(self._ending, trials=(baseline,)), OUTLOOK)
        if not dry_run:
            audience.ended(others[-1], self._ending)
        return self._ending


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(interpreter, "require_torch", lambda python, cwd: None)
    (tmp_path / "train.py").write_text("")
    return tmp_path


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Search]:
    def with_this(*args: Any) -> Search:
        search = Search(*args)
        monkeypatch.setattr(library, "optimize", search, raising=False)
        return search

    return with_this


@pytest.fixture
def kept(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study to go on with, and the newest of this job."""
    folder = project / ".hotloop" / "train-1"
    folder.mkdir(parents=True)
    study.save(lost(), folder)
    load = lambda path: codec.decode(path.read_bytes(), Study)  # noqa: E731
    monkeypatch.setattr(study, "load", load, raising=False)
    monkeypatch.setattr(study, "latest", lambda base, job: folder, raising=False)
    return folder


def run(*words: str) -> int:
    return main(["optimize", *words])


def python(*words: str) -> tuple[str, ...]:
    return ("--python", sys.executable, *words)


class TestEnd:
    def test_what_the_budget_was_too_short_for_has_a_command(
        self, project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        record = won()
        assert record.found is not None
        climbed = Climb(BOTH, (), untried=("compile",))
        ending(replace(record, found=replace(record.found, climb=climbed)))
        assert run(*python("--budget", "5m", "train.py")) == 0
        out = capsys.readouterr().out
        assert "to try what there was no time for" in out
        assert "--budget 600s" in out and "--resume .hotloop/" in out
        assert run(*python("train.py")) == 0
        assert "no time for" not in capsys.readouterr().out

    def test_where_nothing_can_be_compared_more_time_is_of_no_use(
        self, project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        record = lost()
        assert record.found is not None
        climbed = Climb(Plan(), (), untried=("compile",))
        ending(replace(record, found=replace(record.found, climb=climbed, verdict=BLIND)))
        assert run(*python("--budget", "5m", "train.py")) == 0
        out = capsys.readouterr().out
        assert "no two of its runs" in " ".join(out.split()) and "--resume" not in out

    def test_a_search_that_proved_nothing_in_time_can_go_on(
        self, project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        record = won()
        assert record.found is not None
        found = replace(record.found, plan=None, proof=None, verdict=OUT_OF_TIME)
        quick = [replace(trial, seconds=2.0) for trial in record.trials]
        ending(replace(record, found=found, trials=tuple(quick)))
        assert run(*python("--budget", "1m30s", "train.py")) == 0
        out = capsys.readouterr().out
        assert "to go on" in out
        assert "--budget 180s" in out and "--resume .hotloop/" in out
        # A proof takes 22 runs, and what was spent until now is spent.
        slow = [replace(trial, seconds=30.0) for trial in record.trials]
        ending(replace(record, found=found, trials=tuple(slow)))
        assert run(*python("--budget", "1m30s", "train.py")) == 0
        assert "--budget 750s" in capsys.readouterr().out

    def test_a_plan_is_written_and_said(
        self, project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ending(won())
        assert run(*python("train.py", "--lr", "a b")) == 0
        assert plan.load(project / "hotloop.json") == BOTH
        out, err = capsys.readouterr()
        assert "2.00× faster [1.99, 2.01]" in out
        assert "    hotloop run --plan hotloop.json train.py --lr 'a b'\n" in out
        assert "    hotloop verify --plan hotloop.json --steps 1000 train.py --lr 'a b'\n" in out
        assert "about 3 to 9 runs of the script" in err
        assert "hotloop: run 1  as it is  20.0 ms" in err

    def test_the_report_lies_in_the_study(
        self, project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ending(won())
        assert run(*python("train.py")) == 0
        (report,) = project.glob(".hotloop/*/report.md")
        assert "2.00× faster" in report.read_text()
        page = report.with_suffix(".html").relative_to(project)
        assert "2.00× faster" in page.read_text()
        assert capsys.readouterr().out.endswith(f"\n\n  2.00× faster, the report: {page}\n")

    def test_nothing_to_win_is_a_result(
        self, project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ending(lost())
        assert run(*python("train.py")) == 0
        out = capsys.readouterr().out
        assert "Nothing makes this job faster." in out
        assert "hotloop run" not in out
        assert not (project / "hotloop.json").exists()
        assert len(list(project.glob(".hotloop/*/report.md"))) == 1

    def test_a_file_of_the_users_is_not_overwritten(
        self, project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (project / "mine.json").write_text("{}")
        ending(won())
        assert run("--plan-out", "mine.json", *python("train.py")) == 0
        assert (project / "mine.json").read_text() == "{}"
        (instead,) = project.glob(".hotloop/*/hotloop.json")
        out = capsys.readouterr().out
        assert "mine.json is not a plan of hotloop's" in out
        assert f"hotloop run --plan {instead.relative_to(project)} train.py" in out

    def test_quiet_says_only_the_end(
        self, project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ending(won())
        assert run("--quiet", *python("train.py")) == 0
        out, err = capsys.readouterr()
        assert "2.00× faster" in out
        assert err == ""


class TestJson:
    def told(self, capsys: pytest.CaptureFixture[str]) -> Any:
        return json.loads(capsys.readouterr().out)

    def test_of_a_plan(
        self, project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ending(won())
        assert run("--json", *python("train.py")) == 0
        told = self.told(capsys)
        assert (told["version"], told["verdict"]) == (1, "Proven faster.")
        assert told["ratio"]["low"] < told["ratio"]["ratio"] < told["ratio"]["high"]
        assert told["ratio"]["pairs"] == 5
        assert [one["lever"] for one in told["plan"]["levers"]] == ["bf16", "compile"]
        assert told["ladder"][1]["pace"]["step_seconds"] == pytest.approx(0.010)
        assert told["refused"][0]["lever"] == "tf32"
        assert told["equivalence"]["same"] and told["soak"]["passed"]
        assert told["cost"] == {"runs": 7, "seconds": 400.0}
        assert told["payback"]["steps"] == pytest.approx(40_000, rel=0.001)
        assert all(Path(path).is_file() for path in told["paths"].values())

    def test_of_nothing_won(
        self, project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ending(lost())
        assert run("--json", *python("train.py")) == 0
        told = self.told(capsys)
        assert told["plan"] is told["ratio"] is told["paths"]["plan"] is None
        assert told["ladder"] == []

    def test_of_an_error(
        self, project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def fail() -> None:
            raise FailedInTraining("It failed.", "Run it as it is.")

        ending(lost(), fail)
        assert run("--json", *python("train.py")) == FailedInTraining.exit_code
        assert self.told(capsys)["error"]["sentence"] == "It failed."

    def test_of_a_dry_run(
        self, project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ending(replace(won(), diagnosis=Diagnosis("It waits.", (), (), Numbers())))
        assert run("--json", "--dry-run", *python("train.py")) == 0
        told = self.told(capsys)
        assert told["limited_by"] == "It waits."
        assert told["outlook"] == {"runs": [3, 9], "seconds": [60.0, 300.0], "to_prove": 0.0}
        assert told["candidates"][0]["lever"] == "bf16"
        assert told["next"].startswith("hotloop optimize --resume .hotloop/train-")


class TestOptions:
    def test_all_of_them_reach_the_search(self, project: Path, ending: Any) -> None:
        search = ending(lost())
        words = "--budget 10m --steps 30 --only bf16,tf32 --skip tf32 --effect same_math"
        words += " --objective memory --timeout 90s --study kept --no-look"
        assert run(*words.split(), *python("train.py", "--resume", "x")) == 0
        assert search.asked["options"] == Options(
            "memory", "same_math", ("bf16", "tf32"), ("tf32",), 30, 600.0
        )
        assert search.asked["limit"] == 90.0
        assert search.asked["folder"].parent == project / "kept"
        assert search.asked["job"].args == ("--resume", "x")
        assert search.asked["earlier"] is None

    def test_defaults(self, project: Path, ending: Any) -> None:
        search = ending(lost())
        assert run(*python("train.py")) == 0
        assert search.asked["options"] == Options(look=True)
        assert (search.asked["limit"], search.asked["dry_run"]) == (600.0, False)

    @pytest.mark.parametrize("option", ["--only", "--skip"])
    def test_an_unknown_optimisation_is_named_with_the_known_ones(
        self, option: str, project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        search = ending(lost())
        assert run(option, "bf16, fly", *python("train.py")) == UsageError.exit_code
        err = capsys.readouterr().err
        assert f"There is no optimisation fly to give to {option}." in err
        assert "Known are: " in err and "loader_workers, pin_memory, " in err
        assert search.asked == {}

    def test_effects_are_those_that_optimisations_declare(self) -> None:
        assert tuple(Effect) == optimize.EFFECTS


class TestDryRun:
    def test_it_says_what_would_be_done_and_how_to_go_on(
        self, project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        search = ending(won())
        assert run("--dry-run", "--budget", "10m", *python("train.py", "--lr", "1")) == 0
        assert search.asked["dry_run"]
        out, err = capsys.readouterr()
        assert "The search takes about 3 to 9 runs" in out
        assert "About 3 to 9 runs" not in err
        folder = search.asked["folder"].relative_to(project)
        again = f"hotloop optimize --resume {folder} --budget 600s --python {sys.executable}"
        assert f"    {again} train.py --lr 1\n" in out
        assert not (project / "hotloop.json").exists()


class TestResume:
    @pytest.mark.parametrize("named", [[], [".hotloop/train-1"]])
    def test_the_search_goes_on_in_its_folder(
        self, named: list[str], kept: Path, ending: Any
    ) -> None:
        search = ending(won())
        assert run("--resume", *named, "train.py", "--resume", "--budget", "x") == 0
        assert search.asked["folder"] == kept
        assert search.asked["earlier"] == lost()
        assert search.asked["job"].args == ("--resume", "--budget", "x")

    def test_a_folder_without_a_study_is_no_reason_to_begin_anew(
        self, project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        search = ending(won())
        assert run("--resume", "gone", *python("train.py")) == UsageError.exit_code
        assert "There is no study in gone." in capsys.readouterr().err
        assert search.asked == {}


class TestStopping:
    def test_during_the_first_run_leaves_nothing_to_go_on_with(
        self, project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def stop() -> None:
            (search.asked["folder"] / "study.json").unlink()  # it is written after each run
            signal.raise_signal(signal.SIGINT)

        search = ending(won(), stop)
        assert run(*python("train.py")) == 130
        assert capsys.readouterr().err.endswith("there is nothing to keep.\n")

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_ends_it_with_the_command_that_resumes(
        self,
        number: signal.Signals,
        project: Path,
        ending: Any,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        search = ending(won(), lambda: signal.raise_signal(number))
        assert run("--only", "bf16", *python("train.py", "--lr", "a b")) == 128 + number
        folder = search.asked["folder"].relative_to(project)
        out, err = capsys.readouterr()
        assert out == ""
        assert f"hotloop: Interrupted. What was found so far is in {folder}. To go on: " in err
        words = shlex.split(err.rpartition("To go on: ")[2])
        assert words[:2] == ["hotloop", "optimize"]
        assert words[-3:] == ["train.py", "--lr", "a b"]
        again = parser().parse_args(words[1:])
        assert (again.resume, again.only, again.python) == (str(folder), "bf16", sys.executable)
        assert not (project / "hotloop.json").exists()

    def test_an_error_that_a_signal_brought_about_is_no_error(
        self, project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def stop_and_fail() -> None:
            signal.raise_signal(signal.SIGINT)
            raise FailedInTraining("It failed.")

        ending(won(), stop_and_fail)
        assert run(*python("train.py")) == 130
        err = capsys.readouterr().err
        assert "To go on: hotloop optimize --resume" in err
        assert "It failed." not in err

    def test_every_option_is_repeated_in_the_command_that_resumes(
        self, project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ending(won(), lambda: signal.raise_signal(signal.SIGINT))
        given = "--budget 90s --steps 5 --skip bf16 --effect same_math --objective memory"
        given += " --plan-out p.json --timeout 30s"
        assert run(*given.split(), "--no-look", *python("train.py")) == 130
        again = capsys.readouterr().err
        assert f" {given} --python " in again
        assert " --no-look train.py" in again

    def test_two_at_once_are_refused(self, project: Path, ending: Any) -> None:
        from hotloop import lock

        search = ending(won())
        with lock.held(project / ".hotloop"):
            assert run(*python("train.py")) == FolderBusy.exit_code
        assert search.asked == {}
        assert os.listdir(project / ".hotloop") != []
