from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from hotloop.doctor.check import warning
from hotloop.doctor.examination import Examination
from hotloop.report.doctor_console import show_doctor
from hotloop.report.doctor_rows import rows
from tests.report.test_doctor_rows import cpu_only, found

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def screen(examination: Examination, **options: Any) -> str:
    text = io.StringIO()
    show_doctor(Console(file=text, **{"width": 80, **options}), rows(examination))
    return text.getvalue()


@pytest.mark.parametrize("examination", [found(), cpu_only(), found(None)])
def test_one_screen(examination: Examination) -> None:
    text = screen(examination)
    assert len(text.splitlines()) < 40
    assert "1 warning, 1 unknown, 2 in order" in text
    assert not CONTROL.search(text)


def test_each_status_is_told_without_colour() -> None:
    text = screen(found())
    assert re.search(r"!! c +bad\n +→ do\n", text)
    assert re.search(r"\? +b +\?\n", text)
    assert re.search(r"ok a +fine\n", text)


def test_colours_only_where_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[33m" in screen(found(), force_terminal=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[33m" not in screen(found(), force_terminal=True)


def test_a_folders_name_is_literal() -> None:
    hostile = "[red]x[/red]\x1b[31m\x9b2J\x1bc\rdata"
    check = warning(f"disk of {hostile}", hostile, hostile)
    text = screen(replace(found(), checks=(check,)))
    assert "disk of [red]x[/red]2Jdata" in text
    assert not CONTROL.search(text)
