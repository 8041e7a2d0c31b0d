"""How an optimisation is explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotloop import plan
from hotloop.levers.registry import LEVERS
from hotloop.report.lever_rows import card, table


def test_a_line_each() -> None:
    lines = table(list(LEVERS.values()))
    assert [line.split()[0] for line in lines] == list(LEVERS)
    summaries = (lever.summary for lever in LEVERS.values())
    begins = {line.index(summary) for line, summary in zip(lines, summaries, strict=True)}
    assert len(begins) == 1  # one below the other


@pytest.mark.parametrize("name", LEVERS)
def test_the_plan_a_card_shows_can_be_applied(name: str, tmp_path: Path) -> None:
    lines = card(LEVERS[name])
    assert LEVERS[name].summary in lines[0]
    (shown,) = [line for line in lines if line.startswith('  {"version"')]
    path = tmp_path / "hotloop.json"
    path.write_text(shown)
    found = [chosen.lever for chosen in plan.load(path).levers]
    assert found == [*LEVERS[name].requires, name]


@pytest.mark.parametrize("room", [40, 60, 100])
def test_a_terminal_is_not_overrun(room: int) -> None:
    lines = table(list(LEVERS.values()), room)
    assert all(len(line) <= room for line in lines)
    words = " ".join(" ".join(lines).split())
    assert all(f"{lever.effect} {lever.summary}" in words for lever in LEVERS.values())
