from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotloop.errors import StudyNotWritable
from hotloop.experiments import finishing
from hotloop.experiments.base import Case, Figure, Measured, Outcome, Run, Series, gain, lever
from hotloop.experiments.drawing import drawn
from hotloop.experiments.keeping import keep
from hotloop.experiments.lab import Asked, Lab
from hotloop.trial.order import Order
from hotloop.trial.trial import State, Trial
from tests.builders import trial
from tests.experiments.fake_lab import run

CASES = [Case("a", "mlp:MicrobatchMlp", {"hidden": 8}), Case("b", "gpt:TinyGpt")]


class FakeLauncher:
    """Stands for processes; some cases fail."""

    def __init__(self, fails: str = "") -> None:
        self.orders: list[Order] = []
        self._fails = fails

    def launch(self, order: Order, watcher: Any) -> Trial:
        self.orders.append(order)
        made = replace(trial(), number=order.number, plan=order.plan)
        if self._fails and self._fails in order.job.shown:
            return replace(made, state=State.CRASHED, reason="It crashed.", measurement=None)
        return made


def lab(folder: Path, launcher: FakeLauncher, **asked: Any) -> Lab:
    return Lab(
        "/usr/bin/python3",
        "cpu",
        "here",
        Asked(**asked),
        folder,
        launcher,
        lambda glimpse: None,
    )


def test_cases_run_in_rounds_every_other_one_backwards(tmp_path: Path) -> None:
    launcher = FakeLauncher()
    found = lab(tmp_path, launcher, runs=3).measure(CASES)
    entries = [order.job.entry for order in launcher.orders]
    mlp, gpt = "MicrobatchMlp", "TinyGpt"
    assert entries == [mlp, gpt, gpt, mlp, mlp, gpt]
    assert [len(one.runs) for one in found] == [3, 3]
    assert all(one.ran and one.rate for one in found)
    assert len({order.folder for order in launcher.orders}) == 6


def test_a_case_is_a_job_of_ours(tmp_path: Path) -> None:
    launcher = FakeLauncher()
    lab(tmp_path, launcher, runs=1, steps=7).measure(CASES)
    order = launcher.orders[0]
    words = ["-m", "hotloop.workloads.mlp:MicrobatchMlp", "device=cpu", "hidden=8"]
    assert order.job.words == words
    assert order.stop.steps == 7


def test_a_case_that_fails_is_not_tried_again_and_says_why(tmp_path: Path) -> None:
    launcher = FakeLauncher("TinyGpt")
    good, bad = lab(tmp_path, launcher, runs=3).measure(CASES)
    assert good.ran and not bad.ran
    assert bad.reason == "It crashed." and bad.step is None and bad.rate is None
    assert [order.job.entry for order in launcher.orders].count("TinyGpt") == 1


def test_a_training_to_its_end_tells_what_came_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []

    def fake(words: list[str], *rest: Any) -> str:
        seen.append(words)
        told = next(word.partition("=")[2] for word in words if word.startswith("told="))
        Path(told).write_text(json.dumps({"loss": 0.5}))
        return ""

    monkeypatch.setattr(finishing, "failure", fake)
    found = lab(tmp_path, FakeLauncher()).trained(CASES[0], compare="first.pt", epochs=2)
    assert found == {"loss": 0.5}
    assert f"compare={tmp_path / 'first.pt'}" in seen[0] and "epochs=2" in seen[0]


def test_a_training_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finishing, "failure", lambda *all: "ValueError: no")
    assert lab(tmp_path, FakeLauncher()).trained(CASES[0]) == {"reason": "ValueError: no"}
    monkeypatch.setattr(finishing, "failure", lambda *all: "")
    assert lab(tmp_path, FakeLauncher()).trained(CASES[0]) == {"reason": "it told nothing"}


def test_optimisations_act_from_the_first_call_on(tmp_path: Path) -> None:
    """Otherwise a first step as it is would be the peak of each."""
    launcher = FakeLauncher()
    cases = [CASES[0], Case("a", "mlp:MicrobatchMlp", {}, (lever("bf16"),))]
    lab(tmp_path, launcher, runs=1).measure(cases)
    assert [order.plan.at_once for order in launcher.orders] == [False, True]


def test_what_is_large_goes_and_what_was_said_stays(tmp_path: Path) -> None:
    for name in ("unfused.pt", "cache/inductor/kernel.so", "trial-1/output.log"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    lab(tmp_path, FakeLauncher()).close()
    left = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()]
    assert left == ["trial-1/output.log"]


class TestGain:
    def measured(self, *runs: Run, reason: str = "") -> Measured:
        return Measured(CASES[0], runs, reason)

    def test_is_of_the_same_round(self) -> None:
        before = self.measured(run(0.2), run(0.4))
        after = self.measured(run(0.1), run(0.1))
        found = gain(before, after)
        assert found is not None
        assert [found.low, found.high] == pytest.approx([2, 4])
        assert found.ratio == pytest.approx(8**0.5)

    def test_is_by_the_sample(self) -> None:
        found = gain(self.measured(run(0.1, batch=8)), self.measured(run(0.1, batch=16)))
        assert found is not None and found.ratio == pytest.approx(2)

    def test_is_by_the_step_where_samples_are_not_known(self) -> None:
        one = replace(run(0.2), rate=None)
        found = gain(self.measured(one), self.measured(run(0.1)))
        assert found is not None and found.ratio == pytest.approx(2)

    def test_of_what_failed_there_is_none(self) -> None:
        failed = self.measured(run(0.1), reason="It crashed.")
        assert gain(failed, self.measured(run(0.1))) is None
        assert gain(self.measured(run(0.1)), self.measured()) is None


FIGURE = Figure(
    "bars", "A <b>title</b>", "×", (Series("one", (("a", 1.0), ("b", 2.5))), Series("two", ()))
)


@pytest.mark.parametrize("kind", ["bars", "lines"])
def test_a_figure_stands_by_itself(kind: str) -> None:
    text = drawn(replace(FIGURE, kind=kind))
    assert text.startswith("<svg ") and 'xmlns="http://www.w3.org/2000/svg"' in text
    assert "A &lt;b&gt;title" in text and "<b>" not in text
    assert text.count("<rect") >= 3 if kind == "bars" else text.count("<circle") == 2


def test_every_bar_has_a_line_of_its_own() -> None:
    """So that many long names can be read: none is cut, and none lies on another."""
    names = [f"float16 with a scaler, batch {size} in 4 passes" for size in range(40)]
    points = tuple((name, 1.0 + at) for at, name in enumerate(names))
    text = drawn(Figure("bars", "Many", "1/s", (Series("a", points), Series("b", points[:3]))))
    assert all(f">{name}</text>" in text for name in names)
    heights = re.findall(r'<rect x="[\d.]+" y="([\d.]+)" width="[\d.]+" height="14"', text)
    assert len(heights) == len(set(heights)) == 43


def test_a_figure_of_nothing_can_be_drawn() -> None:
    assert drawn(Figure("bars", "Nothing", "×", (Series("none", ()),))).startswith("<svg ")


def test_everything_is_kept(tmp_path: Path) -> None:
    measured = (Measured(Case("a", "mlp:MicrobatchMlp", {}, (lever("bf16"),)), (run(0.1),)),)
    outcome = Outcome("fusion", "Title", "here", ("x",), (("1",),), FIGURE, ("Note.",), measured)
    results, picture = keep(outcome, tmp_path)
    assert results == tmp_path / "results" / "fusion.json"
    told = json.loads(results.read_text())
    assert told["measured"][0]["runs"][0]["step"] == 0.1
    assert told["measured"][0]["case"]["levers"][0]["lever"] == "bf16"
    assert picture.read_text().startswith("<svg ")


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "results").touch()
    outcome = Outcome("fusion", "Title", "here", ("x",), (), FIGURE)
    with pytest.raises(StudyNotWritable, match="cannot be written"):
        keep(outcome, tmp_path)
