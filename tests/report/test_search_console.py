from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from hotloop.diagnose.diagnosis import Diagnosis
from hotloop.diagnose.numbers import Numbers
from hotloop.report.outlook_rows import outlook_rows
from hotloop.report.search_console import show_outlook, show_search, show_verdict
from hotloop.report.search_rows import SearchRows, rows
from hotloop.study import Found, Options, Refused, Study
from hotloop.trial.trial import State
from hotloop.workshop.watching import Outlook
from tests.report.studies import BOTH, failed, lost, searched, won

STYLE = re.compile(r"\x1b\[[0-9;]*m")
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
HOSTILE = "[red]x[/red]\x1b[31m\x1b]0;title\x07\x9b2J\x1bc\rtrain.py"
COMMAND = "hotloop run --plan hotloop.json train.py --with a-long-word " + "x" * 60


def screen(found: SearchRows, width: int = 80, name: str = "train.py") -> list[str]:
    text = io.StringIO()
    left = [("plan", "hotloop.json"), ("report", ".hotloop/train-1/report.md")]
    console = Console(file=text, width=width)
    show_search(console, name, found, left, [("to train under the plan", COMMAND)])
    return text.getvalue().splitlines()


def test_which_runs_the_bars_are_of_is_said_above_them() -> None:
    lines = screen(rows(won()))
    at = next(at for at, line in enumerate(lines) if "where a step's time goes" in line)
    assert lines[at + 1].startswith("  of one run each: run 5, ")


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("record", [won(), lost()], ids=["won", "lost"])
def test_nothing_but_a_command_is_wider_than_the_terminal(record: Study, width: int) -> None:
    lines = screen(rows(record), width)
    assert max(len(line) for line in lines if COMMAND not in line) <= min(width, 100)
    assert f"    {COMMAND}" in lines


def test_both_bars_are_on_one_scale() -> None:
    before, after = [line for line in screen(rows(won())) if "▚" * 3 in line]
    assert len(after.strip()) == len(before.strip()) // 2


def test_the_ladder_has_a_bar_a_row_where_there_is_room() -> None:
    lines = screen(rows(won()), 100)
    start = next(line for line in lines if line.startswith("  as it is"))
    end = next(line for line in lines if line.startswith("  + compile (reduce-overhead)"))
    assert start.count("█") == 2 * end.count("█") > 0
    assert end.split("  ")[2:5] == ["1.60× [1.59, 1.61]", "10.0 ms", " 1.00 s"]
    assert "  ~ from one process alone" in lines


def test_a_narrow_ladder_keeps_the_gain_and_the_step() -> None:
    lines = screen(rows(won()), 60)
    end = next(line for line in lines if line.startswith("  + compile"))
    assert end == "  + compile (reduce-overhea…  1.60× [1.59, 1.61]  10.0 ms"
    assert not any("an epoch  " in line for line in lines)


def test_the_reports_path_is_the_last_thing_before_the_commands() -> None:
    lines = screen(rows(won()))
    assert lines[-4:] == [
        "  report       .hotloop/train-1/report.md",
        "",
        "  to train under the plan:",
        f"    {COMMAND}",
    ]


def test_nothing_won_shows_what_was_tried() -> None:
    text = "\n".join(screen(rows(lost()), 100))
    assert "Nothing makes this job faster." in text
    assert "+ bf16                         25.0 ms   0.80×  refused: no gain over 20.0 ms" in text


def test_a_label_is_said_once() -> None:
    refused = tuple(Refused(name, "slower", True) for name in ("bf16", "tf32"))
    lines = screen(rows(lost(refused=refused)))
    assert "  refused      bf16: slower" in lines
    assert "               tf32: slower" in lines


def test_nothing_a_script_says_reaches_the_terminal_as_a_command() -> None:
    crash = failed("screen", BOTH, state=State.CRASHED, reason=HOSTILE)
    study = searched(Found(Options(), verdict=HOSTILE), crash)
    text = io.StringIO()
    console = Console(file=text, width=80, force_terminal=True)
    show_search(console, HOSTILE, rows(study), [("plan", HOSTILE)], [("run", HOSTILE)])
    plain = STYLE.sub("", text.getvalue())
    assert not CONTROL.search(plain)
    assert "title" not in plain
    assert plain.count("[red]x[/red]") == 5


def outlook(record: Study) -> str:
    text = io.StringIO()
    told = outlook_rows(record, Outlook((3, 9), (60.0, 300.0)))
    show_outlook(Console(file=text, width=60), "train.py", told, [("to go on", COMMAND)])
    return text.getvalue()


def test_the_outlook_says_what_is_tried_and_what_is_not() -> None:
    text = outlook(won())
    assert "The search takes about 3 to 9 runs of the script: 60.0 s" in text
    assert "could help   bf16: may save 30.0% of a step's time at the" in text
    assert "not tried    pin_memory: there is no GPU to copy to" in text
    assert text.endswith(f"  to go on:\n    {COMMAND}\n")


def test_before_a_search_the_reasons_are_left_to_the_report() -> None:
    text = io.StringIO()
    told = outlook_rows(won(), Outlook((3, 9), (60.0, 300.0)))
    show_outlook(Console(file=text, width=80), "train.py", told, in_full=False)
    assert "not tried    pin_memory: --dry-run and the report say why" in text.getvalue()
    assert "there is no GPU" not in text.getvalue()


def test_an_outlook_begins_with_what_limits_the_job() -> None:
    limited = replace(won(), diagnosis=Diagnosis("It waits.", (), (), Numbers()))
    lines = outlook(limited).splitlines()
    (first,) = (at for at, line in enumerate(lines) if "limited by   It waits." in line)
    assert "could help" in lines[first + 1]
    assert "limited by" not in outlook(won())


def test_an_outlook_without_hope_says_so() -> None:
    assert "could help   nothing that hotloop knows" in outlook(lost())


def test_a_verdict_with_its_reasons() -> None:
    text = io.StringIO()
    console = Console(file=text, width=60)
    show_verdict(console, "train.py", False, "Not the same training.", [("differs", "Batch 7.")])
    assert text.getvalue() == (
        "\n  train.py\n\n  Not the same training.\n\n  differs      Batch 7.\n"
    )
