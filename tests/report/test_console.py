from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from hotloop.figures import figures
from hotloop.measurement import Inventory, Measurement, Software
from hotloop.report.console import cells_of, show_profile
from hotloop.report.profile_rows import rows
from hotloop.trial.trial import Shielding
from tests.builders import measurement, model

STYLE = re.compile(r"\x1b\[[0-9;]*m")
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
HOSTILE = "[red]x[/red]\x1b[31m\x1b]0;title\x07\x9b2J\x1bc\rtrain.py"


def screen(
    name: str = "train.py",
    made: Measurement | None = None,
    shielding: Shielding | None = None,
    study: str = ".hotloop/train-1/study.json",
    **options: Any,
) -> str:
    made = made or measurement()
    found = figures(made)
    assert found is not None
    text = io.StringIO()
    console = Console(file=text, **{"width": 80, **options})
    told = rows(made, found, shielding or Shielding())
    show_profile(console, name, made.software, told, study, f"hotloop profile {name}")
    return text.getvalue()


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_bar_fits_every_width(width: int) -> None:
    lines = screen(width=width).splitlines()
    bar = next(line for line in lines if "█" in line and "▚" in line)
    assert len(bar) <= width
    assert len(bar) >= min(width, 100) - 4
    # Prose is folded, and nothing of it is lost; what is to be copied is not.
    assert all(len(line) <= width for line in lines if not line.startswith(("  study", "  next")))
    words = " ".join(" ".join(lines).split())
    assert "loader Digits, 800 samples, batch 8, 2 workers, shuffled" in words


def test_everything_is_said() -> None:
    text = screen()
    for part in (
        "train.py   CPU · torch 2.13.0 · Python 3.11.9",
        "400 samples/s   50 batches/s   an epoch in 2.00 s",
        "where a step's time goes",
        "waiting for data",
        "does well",
        ".hotloop/train-1/study.json",
        "hotloop profile train.py",
    ):
        assert part in text
    assert "GPU" not in text


def test_a_file_gets_no_escapes() -> None:
    assert not CONTROL.search(screen())


def test_a_terminal_gets_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[1;32m" in screen(force_terminal=True, color_system="standard")


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    text = screen(force_terminal=True, color_system="standard")
    codes = {code for style in STYLE.findall(text) for code in style[2:-1].split(";")}
    assert codes <= {"0", "1", ""}  # bold is no colour
    assert "▚" in text and "░" in text


def test_markup_in_a_name_is_text() -> None:
    assert "[red]x[/red].py" in screen(name="[red]x[/red].py")


def test_nothing_a_script_says_reaches_the_terminal_as_a_command() -> None:
    made = measurement(
        software=Software("3.11.9", "2.13.0", HOSTILE),
        inventory=Inventory(models=[model(name=HOSTILE)]),
    )
    kept = Shielding(way="overlay", kept_apart=(HOSTILE,))
    text = screen(HOSTILE, made, kept, study=HOSTILE, force_terminal=True, width=200)
    assert not CONTROL.search(STYLE.sub("", text))
    assert "31m" not in text
    assert text.count("[red]x[/red]2Jtrain.py") == 6


@pytest.mark.parametrize(
    ("given", "width", "cells"),
    [
        ([0.5, 0.5], 10, [5, 5]),
        ([1 / 3, 1 / 3, 1 / 3], 10, [3, 4, 3]),
        ([0.04] * 25, 20, None),
        ([0.5, 0.2], 10, [5, 2]),
        ([1.5, 0.5], 10, [8, 2]),
        ([], 10, []),
    ],
)
def test_cells_add_up(given: list[float], width: int, cells: list[int] | None) -> None:
    found = cells_of(given, width)
    assert min(found, default=0) >= 0
    assert sum(found) == round(min(sum(given), 1.0) * width)
    if cells is not None:
        assert found == cells


def test_a_job_on_the_gpu_shows_both_clocks() -> None:
    made = measurement()
    found = figures(made)
    assert found is not None
    told = rows(made, found, Shielding())
    text = io.StringIO()
    both = replace(told, gpu_phases=told.phases[:2])
    show_profile(Console(file=text, width=80), "t.py", made.software, both, "s", "n")
    assert text.getvalue().index("where a step's") < text.getvalue().index("on the GPU's own clock")
