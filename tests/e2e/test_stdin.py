"""What a script reads from its stdin, in a trial as without hotloop."""

from __future__ import annotations

import os

import pytest

from .conftest import MODEL, Desk

pytestmark = pytest.mark.e2e

READS = "import sys\nprint('experiment', repr(sys.stdin.read()))\n"
NAMED = READS + MODEL + "for _ in range(40):\n    step()\n"


def printed(desk: Desk) -> list[str]:
    return [path.read_text() for path in sorted(desk.project.glob(".hotloop/*/*/output.log"))]


def test_what_is_piped_in_is_given_to_every_trial(desk: Desk) -> None:
    desk.write(NAMED)
    ended = desk.hotloop("profile", "train.py", stdin="exp1\n")
    assert ended.code == 0, ended
    assert len(printed(desk)) > 1
    assert {text.splitlines()[0] for text in printed(desk)} == {"experiment 'exp1\\n'"}


def test_nothing_is_the_end_of_the_input(desk: Desk) -> None:
    desk.write(NAMED)
    ended = desk.finish(desk.start("profile", "--no-look", "train.py"))  # its stdin is /dev/null
    assert ended.code == 0, ended
    assert desk.printed().startswith("experiment ''\n")


def test_a_pipe_that_stays_open_and_silent_is_nobodys_matter(desk: Desk) -> None:
    desk.write(NAMED.removeprefix(READS))
    reading, writing = os.pipe()
    try:
        ended = desk.finish(desk.start("profile", "--no-look", "train.py", stdin=reading))
    finally:
        os.close(reading)
        os.close(writing)
    assert ended.code == 0, ended


def test_a_script_that_waits_for_input_is_told_so(desk: Desk) -> None:
    desk.write(NAMED)
    reading, writing = os.pipe()
    try:
        ended = desk.finish(desk.start("profile", "--timeout", "4s", "train.py", stdin=reading))
    finally:
        os.close(reading)
        os.close(writing)
    ended.expect(90, "its limit of 4 seconds", "waits for input")
    assert "sys.stdin.read()" in ended.err


def test_run_under_a_plan_passes_it_on(desk: Desk) -> None:
    desk.write(NAMED)
    plan = '{"version": 1, "levers": [{"lever": "fused_optimizer", "setting": {}}]}'
    desk.write(plan, "hotloop.json")
    ended = desk.hotloop(
        "run", "--anyway", "--keep-going", "--plan", "hotloop.json", "train.py", stdin="exp1\n"
    )
    assert ended.code == 0, ended
    assert ended.out.startswith("experiment 'exp1\\n'")
