from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import pytest
from rich.console import Console

from hotloop.experiments.base import Case, Measured, Run
from hotloop.experiments.registry import EXPERIMENTS
from hotloop.report.experiment_console import show_experiment
from hotloop.report.experiment_table import lines
from tests.experiments.fake_lab import FakeLab

HEAD = ("", "a step", "over the row before")
ROWS = [("one by one", "143.7 ms", ""), ("fused", "20.3 ms", "7.08× [6.91, 7.30]")]


def test_where_there_is_room_nothing_is_changed() -> None:
    assert lines(HEAD, ROWS, 41) == [
        "            a step    over the row before",
        "one by one  143.7 ms",
        "fused       20.3 ms   7.08× [6.91, 7.30]",
    ]


def test_titles_are_broken_first_then_spreads_go_and_then_the_end_of_labels() -> None:
    assert lines(HEAD, ROWS, 40) == [
        "                      over the row",
        "            a step    before",
        "one by one  143.7 ms",
        "fused       20.3 ms   7.08× [6.91, 7.30]",
    ]
    assert lines(HEAD, ROWS, 39)[-1] == "fused       20.3 ms   7.08×"
    narrow = lines(HEAD, ROWS, 26)
    assert narrow[-2:] == ["one by …  143.7 ms", "fused     20.3 ms   7.08×"]


def test_the_last_columns_spread_goes_first() -> None:
    head, row = ("", "own", "all"), ("a", "1.5× [1, 2]", "2.5× [2, 3]")
    assert lines(head, [row], 22)[-1] == "a  1.5× [1, 2]  2.5×"


def test_a_table_of_nothing() -> None:
    assert lines(("a", "b"), [], 80) == ["a  b"]


class UnevenLab(FakeLab):
    """Whose rounds differ, so that every gain has its brackets."""

    def measure(self, cases: Sequence[Case], runs: int | None = None) -> list[Measured]:
        return [
            replace(one, runs=tuple(self._slower(one, at) for at in range(len(one.runs))))
            for one in super().measure(cases, runs)
        ]

    def _slower(self, one: Measured, at: int) -> Run:
        run, times = one.runs[at], 1 + 0.1 * at * (1 + len(one.case.levers))
        return replace(run, step=run.step * times, rate=(run.rate or 1.0) / times)


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("on_gpu", [False, True])
def test_every_experiments_table_fits_eighty_columns(name: str, on_gpu: bool) -> None:
    found = EXPERIMENTS[name]().run(UnevenLab(on_gpu))  # type: ignore[arg-type]
    text = io.StringIO()
    console = Console(file=text, width=80)
    show_experiment(console, found.title, found.where, found.head, found.rows, found.notes, [])
    said = text.getvalue().splitlines()
    assert max(map(len, said)) <= 80
    assert not any("…" in line for line in said)
