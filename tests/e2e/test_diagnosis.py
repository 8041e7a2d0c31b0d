"""Jobs that are each limited by one known thing: is that what is found, and where?

They run one at a time and nothing beside them: what is found depends on where the time goes.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from planted.suite import SUITE, Planted

from hotloop import roofs
from hotloop.diagnose.diagnosis import Diagnosis
from hotloop.job import ScriptJob
from hotloop.plan import Plan
from hotloop.profiling import diagnosed, look, profile
from hotloop.roof import Roof
from hotloop.trial.launch import ProcessLauncher
from hotloop.trial.order import Glimpse
from hotloop.trial.spec import Look, StopRule
from tests.e2e.conftest import NO_COMPILER, Desk
from tests.planted_answers import problem

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

LIVE = [planted for planted in SUITE if planted.where == "cpu"]
TIMED = StopRule(min_steps=20, min_seconds=1.5, max_seconds=12.0)
LOOKED = Look(warm_up=6, steps=13, seconds=1.2, most_seconds=5.0, counted_steps=1)
ATTEMPTS = 3
"""A machine that does other things for some seconds can make any job wait."""


@pytest.fixture(scope="module")
def roof(tmp_path_factory: pytest.TempPathFactory) -> Roof | None:
    """Measured now, when nothing else runs: what is kept may be from a busy hour."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        return roofs.of(sys.executable)


@pytest.fixture
def light(planted: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No compiler is imported for a job that compiles nothing: by far the most of its seconds."""
    if planted.rule != "recompilation":
        (tmp_path / "sitecustomize.py").write_text(NO_COMPILER)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def diagnosis_of(planted: Planted, folder: Path, roof: Roof | None) -> Diagnosis:
    folder.mkdir()
    place = planted.script.parent
    job = ScriptJob(str(planted.script), False, planted.arguments, sys.executable, str(place))
    launcher = ProcessLauncher()
    record = profile(job, Plan(), TIMED, 100.0, folder, launcher, _ignore)
    record = look(record, job, 100.0, folder, launcher, _ignore, LOOKED)
    record = diagnosed(record, lambda: roof, folder)
    assert record.diagnosis is not None, record.trials[0].reason
    return record.diagnosis


@pytest.mark.parametrize("planted", LIVE, ids=lambda planted: planted.name)
def test_what_was_planted_is_found_first(
    planted: Planted, roof: Roof | None, light: None, tmp_path: Path
) -> None:
    problems = []
    for attempt in range(ATTEMPTS):
        problems.append(problem(planted, diagnosis_of(planted, tmp_path / str(attempt), roof)))
        if not problems[-1]:
            return
    pytest.fail(f"expected {planted.rule} {planted.cause} at {planted.line}: {problems}")


def test_the_whole_command(desk: Desk, roof: Roof | None) -> None:
    source = next(one.script for one in LIVE if one.name == "loss_by_sample")
    desk.write(source.read_text())
    desk.env["XDG_CACHE_HOME"] = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    ended = desk.hotloop("profile", "--json", "--steps", "20", "train.py")
    assert ended.code == 0, ended
    told = json.loads(ended.out)["diagnosis"]
    found = told["findings"][0]
    assert found["rule"] == "python_loop"
    assert found["gain"] > 1.3
    assert {place["file"] for place in found["places"]} == {str(desk.project / "train.py")}
    assert len(told["checklist"]) == 9
    assert told["numbers"]["flops_step"] > 0


def _ignore(glimpse: Glimpse) -> None: ...
