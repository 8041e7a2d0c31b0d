"""What each experiment asks for and what it says of the answers, on a machine on paper."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest

from hotloop.experiments.base import Case, Measured, Outcome, Run
from hotloop.experiments.best import BATCHES, PARTS, SHARE, Point, search
from hotloop.experiments.registry import EXPERIMENTS
from hotloop.levers.registry import LEVERS
from tests.experiments.fake_lab import FakeLab, Law, run, usual
from tests.sources import PACKAGE, ROOT

each = pytest.mark.parametrize("name", EXPERIMENTS)
anywhere = pytest.mark.parametrize("on_gpu", [False, True])


def outcome(name: str, lab: Any) -> Outcome:
    return EXPERIMENTS[name]().run(lab)


@each
@anywhere
def test_comes_to_a_table_a_figure_and_a_sentence(name: str, on_gpu: bool) -> None:
    found = outcome(name, FakeLab(on_gpu))
    assert found.name == name and found.title and found.where == "a machine on paper"
    assert found.rows and all(len(row) == len(found.head) for row in found.rows)
    assert found.figure.kind in ("bars", "lines")
    assert any(series.points for series in found.figure.series)
    assert found.notes and all(note.endswith(".") for note in found.notes)


@each
@anywhere
def test_what_fails_is_said_and_nothing_is_made_up(name: str, on_gpu: bool) -> None:
    """Also where not a single case comes to its end."""

    def failing(case: Case) -> str:
        return "The GPU's memory was exhausted."

    found = outcome(name, FakeLab(on_gpu, failing, told={"reason": "it fell over"}))
    assert not any("×" in cell for row in found.rows for cell in row)
    assert not any("fastest" in note for note in found.notes)
    if name != "flops":  # whose jobs are looked into
        assert any("exhausted" in note for note in found.notes)


@each
@anywhere
def test_workloads_and_settings_exist(name: str, on_gpu: bool) -> None:
    lab = FakeLab(on_gpu)
    outcome(name, lab)
    for case in lab.cases:
        module, _, kind = case.workload.partition(":")
        source = (PACKAGE / "workloads" / f"{module}.py").read_text(encoding="utf-8")
        assert re.search(rf"^class {kind}\(", source, re.M)
        known = source + (PACKAGE / "workloads" / "common.py").read_text(encoding="utf-8")
        known += (PACKAGE / "training_job.py").read_text(encoding="utf-8")
        for setting in case.settings:
            assert re.search(rf"^    {setting}(:| =)", known, re.M), setting
        for chosen in case.levers:
            assert LEVERS[chosen.lever](**chosen.setting).problem() == ""


@each
def test_is_explained(name: str) -> None:
    """Beginning with what it is, and not with a label that only whoever gave it can read."""
    summary = EXPERIMENTS[name].summary
    assert re.match(r"\w", summary) and not re.match(r"[A-Z]\d+:", summary)
    assert len(summary) <= 90
    lab = (ROOT / "docs" / "lab.md").read_text(encoding="utf-8")
    assert f"`{name}`" in lab


@each
@anywhere
def test_a_batch_that_is_asked_for_is_used(name: str, on_gpu: bool) -> None:
    if name in ("best", "flops"):  # which choose themselves
        return
    lab = FakeLab(on_gpu, batch_size=24)
    outcome(name, lab)
    assert 24 in {case.settings.get("batch_size") for case in lab.cases}


@each
@anywhere
@pytest.mark.parametrize("survives", [0, 1])
def test_memory_that_runs_out_at_any_size_is_survived(
    name: str, on_gpu: bool, survives: int
) -> None:
    """In the first round, or only in the second, as at the last step of a long run."""

    class TightLab(FakeLab):
        def measure(self, cases: Any, runs: int | None = None) -> list[Measured]:
            return [self._cut(one) for one in super().measure(cases, runs)]

        def _cut(self, one: Measured) -> Measured:
            if int(one.case.settings.get("batch_size", 8)) <= 8 or not one.runs:
                return one
            reason = "The GPU's memory was exhausted after 3 steps."
            return Measured(one.case, one.runs[:survives], reason)

    lab = TightLab(on_gpu)
    found = outcome(name, lab)
    tight = {one.case.label for one in found.measured if not one.ran}
    for row in found.rows:
        if row[0] in tight:
            assert not any("×" in cell for cell in row)
    assert all(not label or any(label in note for note in found.notes) for label in tight)
    fastest = [note for note in found.notes if note.startswith("The fastest that was run")]
    assert not any(f": {label}." in note for label in tight for note in fastest)


def test_fusion_says_each_parts_share_and_whether_weights_agree() -> None:
    found = outcome("fusion", FakeLab(told={"mean_difference": 1e-7}))
    assert found.rows[1][:4] == ("fused, float32", "1.64 s", "1.25×", "1.25×")
    assert {row[-1] for row in found.rows[1:]} == {"yes"}
    apart = outcome("fusion", FakeLab(told={"mean_difference": 0.5}))
    assert {row[-1] for row in apart.rows[1:]} == {"no"}


def test_fusion_begins_with_microbatches_and_compares_all_with_the_first() -> None:
    lab = FakeLab()
    outcome("fusion", lab)
    first = lab.cases[0].settings
    assert first["batch_size"] == 64 * first["microbatch"] and not lab.cases[0].levers
    assert all(case.levers for case in lab.cases[1:])
    assert lab.to_the_end[0][1]["weights_out"] == "unfused.pt"
    assert {settings.get("compare") for _, settings in lab.to_the_end[1:]} == {"unfused.pt"}


def test_accumulation_notices_weights_that_differ() -> None:
    assert "All learn the same" in outcome("accumulation", FakeLab()).notes[0]
    assert "Not all" in outcome("accumulation", FakeLab(told={"mean_difference": 0.1})).notes[0]
    assert "Not all" in outcome("accumulation", FakeLab(told={"reason": "no"})).notes[0]


def test_accumulation_takes_every_size_down_to_one_sample() -> None:
    rows = outcome("accumulation", FakeLab(batch_size=12)).rows
    assert [row[:2] for row in rows] == [("12", "1"), ("6", "2"), ("3", "4"), ("1", "12")]


def test_compiling_pays_after_so_many_steps() -> None:
    def law(case: Case) -> Run:
        return run(0.01, once=0.095) if case.levers else run(0.02)

    rows = outcome("compile", FakeLab(law=law)).rows
    assert rows[1][-1] == "10 steps"

    def losing(case: Case) -> Run:
        return run(0.03, once=9.0) if case.levers else run(0.02)

    found = outcome("compile", FakeLab(law=losing))
    assert found.rows[1][-1] == "never"
    assert found.notes == ("Compiling does not make this job faster here.",)


def test_checkpointing_says_what_it_saves_and_what_then_fits() -> None:
    def law(case: Case) -> Run:
        batch, again = case.settings["batch_size"], case.settings["recompute"]
        memory = 1000 + batch * (100 if again else 400)
        return run(batch * (1.25 if again else 1.0), batch, memory)

    found = outcome("checkpointing", FakeLab(law=law, batch_size=16))
    assert found.notes[0] == "Saves 75% of the activations' memory for +25% time."
    assert found.notes[1] == "In the memory of before there is room for a batch of 64."
    assert [row[0] for row in found.rows][-1] == "computed again, batch 128"  # the first beyond


def test_precision_labels_what_the_defaults_are() -> None:
    found = outcome("precision", FakeLab(on_gpu=True))
    labels = [row[0] for row in found.rows]
    assert labels[:2] == ["strict float32", "PyTorch's defaults"]
    assert found.rows[1][2] == ""  # all others are compared with it
    assert "within 0.0% of PyTorch's defaults" in found.notes[0]
    asked = outcome("precision", FakeLab(on_gpu=True, precision="bfloat16"))
    assert [row[0] for row in asked.rows] == ["bfloat16"]


def test_techniques_together_are_those_that_ran() -> None:
    def law(case: Case) -> Run | str:
        names = [one.lever for one in case.levers]
        return "It crashed." if names == ["fused_optimizer"] else usual(case)

    lab = FakeLab(law=law)
    found = outcome("techniques", lab)
    together = [one.lever for one in lab.cases[-1].levers]
    assert "compile" in together and "fused_optimizer" not in together
    assert together == [name for name in LEVERS if name in together]  # as they are applied
    assert found.notes[0] == "fused optimizer: It crashed."


def test_scaling_says_its_gains_by_volume_from_what_they_are_counted() -> None:
    notes = outcome("scaling", FakeLab(on_gpu=True)).notes
    assert sum("from PyTorch's defaults" in note for note in notes) == 3
    assert sum("from strict float32" in note for note in notes) == 3


def test_the_ladder_tells_own_gains_from_cumulative_ones() -> None:
    found = outcome("ladder", FakeLab())
    own = [row[1] for row in found.rows[:4]]
    cumulative = [row[2] for row in found.rows[:4]]
    assert own == ["", "1.25×", "1.25×", "1.25×"]
    assert cumulative == ["", "1.25×", "1.56×", "1.95×"]
    assert "With the batch kept: 1.95× from PyTorch's defaults." in found.notes


def test_the_loader_never_names_a_count_that_was_not_run() -> None:
    def law(case: Case) -> Run | str:
        return run(0.01) if len(case.levers) < 1 else "It crashed."

    found = outcome("loader", FakeLab(law=law))
    assert found.notes[0] == "The fastest that was run: no worker."


LAWS: list[Law] = [
    usual,
    lambda case: run(1e-3 * max(case.settings["batch_size"], 32), case.settings["batch_size"]),
    lambda case: run(
        (0.02 + 1e-3 * case.settings["batch_size"])
        * (0.5 if case.settings.get("precision") == "bfloat16" else 1.0)
        * (1.2 if case.levers else 1.0),
        case.settings["batch_size"],
    ),
]


@anywhere
@pytest.mark.parametrize("law", LAWS)
def test_the_best_is_near_the_best_of_all_in_a_quarter_of_the_trials(
    law: Law, on_gpu: bool
) -> None:
    lab = FakeLab(on_gpu, law)
    found = outcome("best", lab)
    tried, every = found.data["tried"], found.data["of"]
    assert tried == len(lab.cases)
    assert tried <= max(SHARE * every, 8)
    chosen = next(one for one in found.measured if f": {one.case.label}." in found.notes[0])
    every_rate = [rate for case in _all_of(on_gpu) if (rate := one_rate(law, case))]
    assert chosen.rate is not None and chosen.rate >= 0.97 * max(every_rate)


def _all_of(on_gpu: bool) -> list[Case]:
    lab = FakeLab(on_gpu, exhaustive=True)
    outcome("best", lab)
    return lab.cases


def one_rate(law: Law, case: Case) -> float | None:
    found = law(case)
    return found.rate if isinstance(found, Run) else None


@anywhere
def test_held_against_all_the_best_says_how_far_it_is_from_the_fastest(on_gpu: bool) -> None:
    """A law under which passes win at a batch that the search leaves out."""

    def law(case: Case) -> Run:
        size = case.settings["batch_size"]
        lucky = size == 4 and case.levers and case.levers[0].setting["size"] == 1
        return run(1e-3 * size * (0.5 if lucky else 1.0), size)

    smallest = 4 if not on_gpu else 16
    lab = FakeLab(on_gpu, law, exhaustive=True)
    found = outcome("best", lab)
    told = found.data["exhaustive"]
    labels = [case.label for case in lab.cases]
    assert len(set(labels)) == found.data["of"] == len(found.measured)
    assert found.data["tried"] <= SHARE * found.data["of"]
    assert found.data["share"] == found.data["tried"] / found.data["of"]
    if smallest == 4:
        assert told["behind"] == pytest.approx(0.5)
        assert "the choice is 50.0% behind it" in found.notes[2]
    else:
        assert told["behind"] == pytest.approx(0.0)


def test_a_choice_that_fails_the_second_time_is_behind_nobody_knows_what() -> None:
    def law(case: Case) -> Run | str:
        seen.append(case.label)
        again = case.label == chosen and seen.count(chosen) > 1
        return "It crashed." if again else usual(case)

    chosen = outcome("best", FakeLab()).notes[0].partition(": ")[2].rstrip(".")
    seen: list[str] = []
    found = outcome("best", FakeLab(law=law, exhaustive=True))
    assert found.data["exhaustive"]["behind"] is None
    assert "failed the second time" in found.notes[2]


def test_only_what_searches_is_held_against_all() -> None:
    assert [name for name, one in EXPERIMENTS.items() if one.searches] == ["best"]
    assert outcome("best", FakeLab()).data["exhaustive"] is None


@pytest.mark.parametrize("full", [4, 16, 100, 2000])
@pytest.mark.parametrize("fast", [0, 1])
def test_the_search_finds_what_an_exhaustive_one_finds(full: int, fast: int) -> None:
    """Rates that grow up to a size and then stay, and a format that is faster than the other."""
    formats, batches = ("a", "b"), BATCHES[True]

    def rate(point: Point) -> float:
        whole = min(point.batch, full) * (1.5 if formats.index(point.form) == fast else 1.0)
        return whole / (1 + 0.1 * (point.parts - 1))

    asked: set[Point] = set()

    def measured(point: Point) -> float:
        asked.add(point)
        return rate(point)

    every = [Point(*each) for each in product(formats, batches, PARTS)]
    found = search(formats, batches, measured)
    assert rate(found) >= 0.97 * max(map(rate, every))
    assert found in asked
    assert len(asked) <= SHARE * len(every)
