from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable

import pytest

from hotloop.cli import live_search
from hotloop.cli.live_search import LiveSearch, time_words
from hotloop.plan import Plan
from hotloop.study import Found, Options, Study
from hotloop.trial.order import Glimpse
from hotloop.trial.trial import State
from hotloop.workshop.watching import Outlook
from tests.report.studies import BF16, BOTH, failed, lost, numbered, searched, timed, won

OUTLOOK = Outlook((3, 9), (60.0, 300.0))


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    monkeypatch.setattr(live_search, "EVERY_SECONDS", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    return Screen()


def last_frame(screen: Screen, tell: Callable[[LiveSearch], None]) -> list[str]:
    """What is on the screen once `tell` is over, without the movements of the cursor."""
    with contextlib.redirect_stderr(screen):
        live = LiveSearch("train.py", Options(budget=600.0), [])
        with live:
            tell(live)
            shown = screen.getvalue()
    frame = re.split(r"\x1b\[2K(?:\x1b\[1A\x1b\[2K)*", shown)[-1]
    return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", frame).splitlines()]


def told(live: LiveSearch, study: Study) -> None:
    for count, trial in enumerate(study.trials, start=1):
        live.began(trial.number, trial.purpose, trial.plan)
        live.ended(trial, searched(study.found, *study.trials[:count]))


def test_on_a_terminal_a_table_grows(screen: Screen) -> None:
    def tell(live: LiveSearch) -> None:
        told(live, lost())
        live.began(4, "screen", BOTH)
        live.glimpsed(Glimpse(2.0, 31, None, b"epoch 1\n"))

    lines = [re.sub("  +", "  ", line).strip() for line in last_frame(screen, tell)]
    assert lines[0] == "1  as it is  20.0 ms"
    assert lines[1].startswith("2  + bf16  25.0 ms  0.80×  refused: no gain")
    assert "crashed: It" in lines[2]
    assert lines[3].startswith("4  + bf16 + compile (reduce-overhead)  step 31  2.00 s")
    assert lines[4] == "65.5 s gone, 8.9 min of the budget left"


def test_the_table_keeps_to_the_last_trials_and_to_the_width(screen: Screen) -> None:
    crash = failed("screen", BOTH, state=State.CRASHED, reason="Because. " * 30)
    lines = last_frame(screen, lambda live: told(live, searched(Found(Options()), *[crash] * 20)))
    assert len(lines) == live_search.LINES
    assert lines[-1].startswith(" 20 ")
    assert max(map(len, lines)) <= 60


def test_a_running_trial_that_has_not_stepped_is_starting(screen: Screen) -> None:
    def tell(live: LiveSearch) -> None:
        live.began(1, "baseline", Plan())
        live.glimpsed(Glimpse(1.0, 0, None, b""))

    assert "  1  as it is   starting   1.00 s" in last_frame(screen, tell)


def test_elsewhere_there_is_a_line_a_trial(capsys: pytest.CaptureFixture[str]) -> None:
    with LiveSearch("train.py", Options(), []) as live:
        told(live, lost())
        live.glimpsed(Glimpse(2.0, 31, None, b"epoch 1\n"))
    assert capsys.readouterr().err.splitlines() == [
        "hotloop: run 1  as it is  20.0 ms",
        "hotloop: run 2  + bf16  25.0 ms  0.80×  refused: no gain over 20.0 ms",
        "hotloop: run 3  + compile (reduce-overhead)  crashed: It failed: ValueError.",
    ]


def test_the_trials_of_an_earlier_search_are_told_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with LiveSearch("train.py", Options(), []) as live:
        live.ended(lost().trials[-1], lost())
        live.ended(lost().trials[-1], lost())
    assert capsys.readouterr().err.count("\n") == 3


def test_the_outlook_is_told_unless_the_caller_does(capsys: pytest.CaptureFixture[str]) -> None:
    for aloud in (True, False):
        live = LiveSearch("train.py", Options(), [], says_outlook=aloud)
        live.planned(searched(won().found), OUTLOOK)
        assert live.outlook == OUTLOOK
        assert ("about 3 to 9 runs of the script" in capsys.readouterr().err) == aloud


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str], screen: Screen) -> None:
    with LiveSearch("train.py", Options(), [], quiet=True) as live:
        live.planned(won(), OUTLOOK)
        told(live, lost())
    assert capsys.readouterr() == ("", "")
    with contextlib.redirect_stderr(screen), LiveSearch("t.py", Options(), [], quiet=True) as live:
        told(live, lost())
    assert screen.getvalue() == ""


def test_the_scripts_output_goes_through_if_asked(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    with LiveSearch("train.py", Options(), [], show_output=True) as live:
        live.glimpsed(Glimpse(2.0, 31, None, b"epoch 1\r\n"))
    assert capfdbinary.readouterr().err == b"epoch 1\r\n"


def test_a_signal_stops_it_at_the_next_glimpse() -> None:
    received: list[int] = []
    with LiveSearch("train.py", Options(), received, quiet=True) as live:
        live.glimpsed(Glimpse(1.0, 1, None, b""))
        received.append(2)
        with pytest.raises(KeyboardInterrupt):
            live.glimpsed(Glimpse(1.0, 1, None, b""))


def test_what_a_script_says_cannot_act_on_the_terminal(screen: Screen) -> None:
    hostile = failed("screen", BOTH, state=State.CRASHED, reason="\x1b]0;title\x07[red]x[/red]")
    lines = last_frame(screen, lambda live: told(live, searched(None, hostile)))
    assert "crashed: [re" in lines[0]
    assert "title" not in screen.getvalue()


@pytest.mark.parametrize(
    ("budget", "outlook", "words"),
    [
        (600.0, OUTLOOK, "90.0 s gone, 8.5 min of the budget left"),
        (60.0, None, "90.0 s gone, 0 µs of the budget left"),
        (None, OUTLOOK, "90.0 s gone of 60.0 s to 5.0 min"),
        (None, None, "90.0 s gone"),
    ],
)
def test_the_time_left(budget: float | None, outlook: Outlook | None, words: str) -> None:
    assert time_words(90.0, budget, outlook) == words


def test_a_second_proof_is_announced_as_such(screen: Screen) -> None:
    proofs = numbered(timed("proof", BOTH, 10), timed("proof", Plan((BF16,)), 10))

    def tell(live: LiveSearch) -> None:
        told(live, searched(None, *proofs))
        live.began(3, "proof", Plan((BF16,)))
        live.glimpsed(Glimpse(1.0, 5, None, b""))

    assert any("proof 2: without compile   step 5" in line for line in last_frame(screen, tell))
