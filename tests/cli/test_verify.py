from __future__ import annotations

import json
import signal
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hotloop import interpreter, plan
from hotloop.cli.main import main
from hotloop.equivalence.judge import Equivalence
from hotloop.errors import PlanError
from hotloop.plan import Plan
from hotloop.study import Found, Options, Study
from hotloop.trial.order import Glimpse
from tests.report.studies import BOTH, same, searched, timed

DIFFERENT = same(same=False, reasons=("Step 30: the learning rate is 0.9, not 1.",))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(interpreter, "require_torch", lambda python, cwd: None)
    (tmp_path / "train.py").write_text("")
    plan.save(BOTH, tmp_path / "hotloop.json")
    return tmp_path


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """In place of the real one: a made-up verdict. What it was asked is noted."""

    def with_this(
        found: Equivalence | None, before: Callable[[], None] = lambda: None
    ) -> dict[str, Any]:
        asked: dict[str, Any] = {}

        def verify(
            job: Any, chosen: Plan, steps: int, limit: float, folder: Path, _: Any, audience: Any
        ) -> Study:
            asked.update(job=job, plan=chosen, steps=steps, limit=limit)
            audience.began(1, "reference", Plan())
            before()
            audience.glimpsed(Glimpse(1.0, 3, None, b""))
            record = searched(Found(Options(), equivalence=found), timed("reference", Plan(), 20))
            audience.ended(record.trials[0], record)
            return record

        module = types.ModuleType("hotloop.verify")
        module.verify = verify  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "hotloop.verify", module)
        return asked

    return with_this


def run(*words: str) -> int:
    return main(["verify", "--plan", "hotloop.json", *words])


def test_the_same_training_exits_with_0(
    project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ending(same())
    assert run("--steps", "1000", "--timeout", "2m", "train.py", "--lr", "1") == 0
    assert (asked["plan"], asked["steps"], asked["limit"]) == (BOTH, 1000, 120.0)
    assert asked["job"].args == ("--lr", "1")
    out, err = capsys.readouterr()
    assert "  Indistinguishable training over 60 steps.\n" in out
    assert "compared     Every batch of loader 0 by its checksum." in out
    assert "arithmetic   the largest difference is 0.12 of what would still pass" in out
    assert "study        .hotloop/train-" in out
    assert err == "hotloop: run 1  examined: reference, as it is\n"


def test_another_training_exits_with_1_and_the_reason(
    project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    ending(DIFFERENT)
    assert run("--quiet", "train.py") == 1
    out, err = capsys.readouterr()
    assert "Not the same training." in out
    assert "differs      Step 30: the learning rate is 0.9, not 1." in out
    assert err == ""


def test_nothing_compared_is_not_the_same(project: Path, ending: Any) -> None:
    ending(None)
    assert run("train.py") == 1


@pytest.mark.parametrize(("found", "code"), [(same(), 0), (DIFFERENT, 1), (None, 1)])
def test_as_json(
    found: Equivalence | None,
    code: int,
    project: Path,
    ending: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ending(found)
    assert run("--json", "train.py") == code
    told = json.loads(capsys.readouterr().out)
    assert told["same"] is (code == 0)
    assert (told["equivalence"] or {"steps": None})["steps"] == (found.steps if found else None)


def test_what_is_no_plan_is_refused_before_anything_runs(
    project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ending(same())
    (project / "hotloop.json").write_text("{")
    assert run("train.py") == PlanError.exit_code
    assert asked == {}
    assert not (project / ".hotloop").exists()


def test_a_signal_ends_it_cleanly(
    project: Path, ending: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    ending(same(), lambda: signal.raise_signal(signal.SIGTERM))
    assert run("train.py") == 143
    out, err = capsys.readouterr()
    assert out == ""
    assert "hotloop: Interrupted. What was seen so far is in .hotloop/train-" in err


def test_its_help_explains_its_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["verify", "--help"])
    assert "Exits with 0 when the training is indistinguishable" in capsys.readouterr().out
