from __future__ import annotations

import contextlib
import io
import re

import pytest

from hotloop.cli import live
from hotloop.cli.live import Live, gpu_words
from hotloop.machine import GpuState
from hotloop.trial.order import Glimpse
from hotloop.trial.spec import StopRule
from tests.builders import job


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    monkeypatch.setattr(live, "EVERY_SECONDS", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Screen()


def show(screen: Screen, glimpse: Glimpse) -> str:
    """What is on the screen then, without the movements of the cursor."""
    rule = StopRule(warm_up=10, steps=20)
    with contextlib.redirect_stderr(screen), Live(job(), rule, show_output=False) as shown:
        shown(glimpse)
        shown._status._live.refresh()
    return re.sub(r"\x1b\[(?!2J)[0-9;?]*[A-Za-z]", "", screen.getvalue())


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (None, []),
        (GpuState(None, None, None, None), []),
        (GpuState(0, 0, 0, 0.0), ["GPU 0% busy", "0 B", "0 °C", "0 W"]),
        (GpuState(97, 2**30, 61, 412.7), ["GPU 97% busy", "1.0 GiB", "61 °C", "413 W"]),
        (GpuState(None, 2**30, None, None), ["1.0 GiB"]),
    ],
)
def test_what_a_gpu_does_not_tell_is_not_said(state: GpuState | None, words: list[str]) -> None:
    assert gpu_words(state) == words


@pytest.mark.parametrize(
    ("steps", "says"),
    [(0, "starting"), (7, "step 7 of about 30"), (30, "step 30 of about 30"), (31, "step 31   ")],
)
def test_on_a_terminal_a_line_renews_itself(screen: Screen, steps: int, says: str) -> None:
    text = show(screen, Glimpse(2.0, steps, 2**30, b"epoch 1\r\nepoch 2\r\n"))
    assert says in text
    assert "2.00 s   host 1.0 GiB" in text
    assert "epoch 2" in text
    assert "epoch 1" not in text


def test_unknown_memory_is_not_said(screen: Screen) -> None:
    assert "host" not in show(screen, Glimpse(2.0, 1, None, b""))


def test_what_the_script_prints_cannot_act_on_the_terminal(screen: Screen) -> None:
    text = show(screen, Glimpse(2.0, 1, None, b"\x1b]0;title\x07[red]x[/red]\x1b[2J"))
    assert "[red]x[/red]" in text
    assert "title" not in text
    assert "\x1b" not in text


def test_elsewhere_only_a_first_line(capsys: pytest.CaptureFixture[str]) -> None:
    with Live(job(target="a\x1b[31mb.py"), StopRule(), show_output=False) as shown:
        shown(Glimpse(2.0, 1, None, b"epoch 1\n"))
    assert capsys.readouterr().err == "hotloop: measuring ab.py …\n"


def test_quiet_says_nothing(screen: Screen) -> None:
    rule = StopRule(steps=20)
    with contextlib.redirect_stderr(screen), Live(job(), rule, False, quiet=True) as shown:
        shown.say("looking into it")
        shown(Glimpse(2.0, 7, 2**30, b"epoch 1\r\n"))
    assert screen.getvalue() == ""


def test_what_the_script_prints_is_not_mixed_with_a_line_that_moves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen = io.TextIOWrapper(io.BytesIO(), line_buffering=True)
    monkeypatch.setattr(screen, "isatty", lambda: True)
    with contextlib.redirect_stderr(screen), Live(job(), StopRule(), show_output=True) as shown:
        shown(Glimpse(2.0, 7, 2**30, b"epoch 1\r\n"))
    assert isinstance(screen.buffer, io.BytesIO)
    assert screen.buffer.getvalue().decode().endswith("measuring train.py …\nepoch 1\r\n")
