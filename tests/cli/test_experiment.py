from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hotloop import interpreter
from hotloop.cli.main import main
from hotloop.experiments import registry
from hotloop.experiments.base import Experiment, Figure, Outcome, Series


class Quick(Experiment):
    name = "quick"
    summary = "nothing at all"
    asked: Any = None

    def run(self, lab: Any) -> Outcome:
        Quick.asked = lab.asked
        figure = Figure("bars", "Figure", "×", (Series("s", (("a", 1.0),)),))
        return Outcome("quick", "Title", lab.where, ("what", "value"), (("a", "1.5×"),), figure)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(interpreter, "require_torch", lambda python, cwd: None)
    monkeypatch.setitem(registry.EXPERIMENTS, "quick", Quick)
    return tmp_path


def test_lists_all_of_them(capsys: Any) -> None:
    assert main(["experiment", "--list"]) == 0
    said = capsys.readouterr().out
    assert all(name in said and one.summary in said for name, one in registry.EXPERIMENTS.items())


@pytest.mark.parametrize("words", [[], ["nothing"]])
def test_which_one(words: list[str], capsys: Any) -> None:
    assert main(["experiment", *words]) == 80
    assert "There are: fusion" in capsys.readouterr().err


def test_prints_a_table_and_keeps_it(capsys: Any, here: Path) -> None:
    words = ["--batch-size", "7", "--precision", "bfloat16", "--runs", "2", "--device", "cpu"]
    assert main(["experiment", "quick", *words]) == 0
    said = capsys.readouterr().out
    assert "1.5×" in said and "lab/results/quick.json" in said
    assert (here / "lab" / "figures" / "quick.svg").is_file()
    assert (Quick.asked.batch_size, Quick.asked.precision, Quick.asked.runs) == (7, "bfloat16", 2)


def test_as_json(capsys: Any, here: Path) -> None:
    assert main(["experiment", "quick", "--json", "--out", "there", "--device", "cpu"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["experiment"]["rows"] == [["a", "1.5×"]]
    assert told["results"] == str(here / "there" / "results" / "quick.json")


def test_what_runs_everything_anyway_is_not_exhaustive(capsys: Any) -> None:
    assert main(["experiment", "quick", "--exhaustive"]) == 80
    assert "--exhaustive is for best." in capsys.readouterr().err


def test_a_folder_that_cannot_be_made(capsys: Any, here: Path) -> None:
    (here / "there").touch()
    assert main(["experiment", "quick", "--out", "there", "--device", "cpu"]) == 94
    assert "Name another folder with --out." in capsys.readouterr().err
