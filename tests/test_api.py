"""`hotloop.optimize` and `hotloop.profile`, without the processes that they start."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hotloop
from hotloop import api, interpreter
from hotloop.errors import JobInvalid, NothingMeasured, ScriptNotFound, UsageError
from hotloop.study import Study
from hotloop.training_job import TrainingJob
from hotloop.trial.order import Order
from hotloop.trial.trial import State, Trial
from tests.builders import trial
from tests.report.studies import won


class Importable(TrainingJob):
    pass


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(interpreter, "require_torch", lambda python, cwd: None)
    (tmp_path / "jobs.py").touch()
    return tmp_path


class FakeLauncher:
    """Stands for the processes: every trial ends as it was told."""

    outcome = trial()
    orders: list[Order]

    def __init__(self) -> None:
        type(self).orders = []

    def launch(self, order: Order, watcher: Any) -> Trial:
        self.orders.append(order)
        return replace(self.outcome, number=order.number, plan=order.plan)


class TestWhichJob:
    def test_a_class_in_a_file_and_its_settings(self, here: Path) -> None:
        found = api.job_of("jobs.py:Mine", (), {"hidden": 8, "wide": True}, None)
        assert found.words == ["jobs.py:Mine", "hidden=8", "wide=True"]
        assert (found.python, found.cwd) == (sys.executable, str(here))

    def test_a_script_and_its_arguments(self) -> None:
        found = api.job_of("jobs.py", ("--lr", "1"), {}, None)
        assert (found.words, found.entry) == (["jobs.py", "--lr", "1"], "")

    def test_a_class_that_can_be_imported(self) -> None:
        found = api.job_of(Importable, (), {}, None)
        assert found.words == ["-m", "tests.test_api:Importable"]

    def test_a_class_of_a_module_that_lies_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Importable, "__module__", "jobs")
        file = type(sys)("jobs")
        file.__file__ = "jobs.py"
        monkeypatch.setitem(sys.modules, "jobs", file)
        assert api.job_of(Importable, (), {}, None).words == ["jobs.py:Importable"]

    def test_a_class_of_the_notebook_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Importable, "__module__", "__main__")
        with pytest.raises(JobInvalid, match="in this notebook or program itself") as caught:
            hotloop.optimize(Importable)
        # As a notebook shows it: what is wrong, and what to do about it.
        assert '%%writefile jobs.py, and give "jobs.py:Importable"' in str(caught.value)

    def test_a_class_inside_a_function(self) -> None:
        class Inner(TrainingJob):
            pass

        with pytest.raises(JobInvalid, match="Inner is defined inside TestWhichJob"):
            hotloop.profile(Inner)

    @pytest.mark.parametrize("wrong", [3, None, Importable()])
    def test_what_is_no_job(self, wrong: Any) -> None:
        with pytest.raises(JobInvalid, match=r"or a class of hotloop\.TrainingJob, not"):
            hotloop.optimize(wrong)

    def test_what_is_not_there(self) -> None:
        with pytest.raises(ScriptNotFound):
            hotloop.optimize("gone.py:Mine")


class TestOptimize:
    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
        """What the search was asked for; it finds something at once."""
        asked: list[Any] = []

        def search(job: Any, options: Any, *rest: Any, **more: Any) -> Study:
            asked.append((job, options))
            return replace(won(), job=job)

        monkeypatch.setattr(api, "search", search)
        return asked

    def test_hands_back_what_was_found(self, asked: list[Any], here: Path) -> None:
        found = hotloop.optimize("jobs.py:Mine", budget=60.0, only=["bf16"], quiet=True)
        job, options = asked[0]
        assert job.shown == "jobs.py:Mine"
        assert (options.budget, options.only, options.look) == (60.0, ("bf16",), True)
        assert found.plan is not None and found.plan_file == Path("hotloop.json")
        assert (here / "hotloop.json").is_file() and (found.folder / "report.md").is_file()

    def test_shows_itself(self, asked: list[Any]) -> None:
        found = hotloop.optimize("jobs.py:Mine", quiet=True)
        assert found.verdict in repr(found) and "jobs.py:Mine" in repr(found)
        assert found.verdict in found._repr_html_()
        assert "own gain" in str(found)

    def test_a_budget_and_names_as_the_command_line_has_them(self, asked: list[Any]) -> None:
        hotloop.optimize("jobs.py:Mine", budget="2m", only="bf16,tf32", skip="tf32", quiet=True)
        (_, options) = asked[0]
        assert options.budget == 120.0
        assert (options.only, options.skip) == (("bf16", "tf32"), ("tf32",))

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ({"effect": "any"}, "There is no effect 'any'"),
            ({"objective": "fun"}, "There is no objective 'fun'"),
            ({"budget": "soon"}, "The budget is no time"),
        ],
    )
    def test_what_makes_no_sense(self, wrong: Any, said: str, asked: list[Any]) -> None:
        with pytest.raises(UsageError, match=said):
            hotloop.optimize("jobs.py:Mine", **wrong)

    def test_a_lever_that_there_is_not(self, asked: list[Any]) -> None:
        with pytest.raises(UsageError, match="no optimisation warp"):
            hotloop.optimize("jobs.py:Mine", skip=["warp"])


class TestProfile:
    @pytest.fixture(autouse=True)
    def launcher(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(api, "ProcessLauncher", FakeLauncher)

    def test_shows_itself(self) -> None:
        found = hotloop.profile("jobs.py:Mine", look=False, hidden=3)
        assert [order.job.words for order in FakeLauncher.orders] == [["jobs.py:Mine", "hidden=3"]]
        assert "samples/s" in found.verdict and "samples/s" in found._repr_html_()
        assert "where a step's time goes" in str(found)
        assert found.plan is None

    def test_looks_into_it_unless_told_not_to(self) -> None:
        found = hotloop.profile("jobs.py:Mine", steps=7)
        assert [order.look is not None for order in FakeLauncher.orders] == [False, True]
        assert FakeLauncher.orders[0].stop.steps == 7
        assert found.study.diagnosis is not None
        assert found.study.diagnosis.verdict in str(found)

    def test_what_went_wrong_is_raised(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ended = replace(trial(), state=State.NOTHING_MEASURED, reason="It never trained.")
        monkeypatch.setattr(FakeLauncher, "outcome", ended)
        with pytest.raises(NothingMeasured, match="It never trained"):
            hotloop.profile("jobs.py:Mine")
