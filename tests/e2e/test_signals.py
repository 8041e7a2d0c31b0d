"""Stopping hotloop itself: at any moment, in any way, nothing is left running."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import LONG, MODEL, Desk, until

pytestmark = pytest.mark.e2e

SLEEPS = "import time\nprint('sleeping', flush=True)\ntime.sleep(1000)\n"
SLOW_STEPS = (
    "print('importing', flush=True)\n" + MODEL + "import time\n"
    "while True:\n    step()\n    time.sleep(0.02)\n"
)

Moment = Callable[[Desk, subprocess.Popen[bytes]], None]


def has_begun(desk: Desk, process: subprocess.Popen[bytes]) -> None:
    until(lambda: list(desk.project.glob(".hotloop/*/trial-1")))


def sleeps(desk: Desk, process: subprocess.Popen[bytes]) -> None:
    desk.wait_for_output("sleeping")


def imports(desk: Desk, process: subprocess.Popen[bytes]) -> None:
    desk.wait_for_output("importing")


def trains(desk: Desk, process: subprocess.Popen[bytes]) -> None:
    desk.wait_for_steps()


def to_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    os.killpg(process.pid, number)


def to_parent(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    process.send_signal(number)


Send = Callable[[subprocess.Popen[bytes], signal.Signals], None]
CODES = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}


@pytest.mark.parametrize(
    ("moment", "name", "send"),
    [
        (has_begun, "SIGINT", to_group),
        (has_begun, "SIGINT", to_parent),
        (has_begun, "SIGTERM", to_parent),
        (sleeps, "SIGINT", to_group),
        (sleeps, "SIGTERM", to_group),
        (sleeps, "SIGHUP", to_parent),
        (imports, "SIGINT", to_parent),
        (imports, "SIGTERM", to_group),
        (trains, "SIGINT", to_group),
        (trains, "SIGINT", to_parent),
        (trains, "SIGTERM", to_parent),
    ],
)
def test_stopped(desk: Desk, moment: Moment, name: str, send: Send) -> None:
    desk.write(SLOW_STEPS if moment in (imports, trains) else SLEEPS)
    before = desk.files()
    process = desk.start("profile", "train.py")
    moment(desk, process)
    send(process, signal.Signals[name])
    ended = desk.finish(process)
    ended.expect(CODES[name], "Interrupted.")
    desk.expect_clean(before)
    (trial,) = desk.study()["trials"]
    assert trial["state"] == "interrupted"
    assert str(desk.trial.parent) in ended.sentence


def test_what_was_ignored_stays_ignored(desk: Desk) -> None:
    """As under nohup."""
    desk.write("import time\nprint('sleeping', flush=True)\ntime.sleep(1)\n")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = desk.start("profile", "train.py")
    finally:
        signal.signal(signal.SIGHUP, before)
    sleeps(desk, process)
    process.send_signal(signal.SIGHUP)
    desk.finish(process).expect(89, "without importing torch", remedy="train")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_at_many_moments(desk: Desk, name: str) -> None:
    """Also where nothing was prepared for it: in an import, while a file is written."""
    desk.write(SLEEPS)
    before = desk.files()
    for delay in (0.06, 0.12, 0.18, 0.25, 0.32, 0.4):
        process = desk.start("profile", "train.py")
        time.sleep(delay)
        process.send_signal(signal.Signals[name])
        ended = desk.finish(process)
        # Before there is any code of ours to hear it, the signal means what it means to Python.
        plain = -signal.Signals[name]
        assert ended.code in (128 - plain, plain), (delay, ended)
        if ended.code > 0:
            ended.expect(128 - plain, "Interrupted")
    desk.expect_clean(before)
    for study in desk.project.glob(".hotloop/*/study.json"):
        json.loads(study.read_text())
    assert not list(desk.project.glob(".hotloop/*/*.partial"))


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_before_the_trial(desk: Desk, name: str) -> None:
    """While an interpreter that is slow to start is asked whether it has torch."""
    desk.write("")
    slow = desk.base / "python"
    slow.write_text(f"#!/bin/sh\necho > {desk.base}/asked\nexec sleep 1000\n")
    slow.chmod(0o755)
    process = desk.start("profile", "--python", str(slow), "train.py")
    until((desk.base / "asked").exists)
    to_group(process, signal.Signals[name])
    desk.finish(process).expect(CODES[name], "Interrupted.")
    assert not desk.survivors()
    assert not (desk.project / ".hotloop").exists()


def test_twice(desk: Desk) -> None:
    """An impatient second Ctrl-C does not cut the clean-up short."""
    desk.write("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SLEEPS)
    before = desk.files()
    process = desk.start("profile", "train.py")
    sleeps(desk, process)
    for _ in range(5):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    desk.finish(process).expect(130, "Interrupted.")
    desk.expect_clean(before)


def test_control_c_on_a_terminal(desk: Desk) -> None:
    desk.write(SLEEPS)
    before = desk.files()
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(desk.project)
        program = str(Path(sys.executable).with_name("hotloop"))
        os.execve(program, [program, "profile", "train.py"], {**desk.env, "TERM": "xterm"})
    desk.wait_for_output("sleeping")
    os.write(terminal, b"\x03")
    shown = b""
    try:
        while chunk := os.read(terminal, 65536):
            shown += chunk
    except OSError:  # Linux says EIO at the end
        pass
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    assert b"hotloop: Interrupted." in shown
    assert b"Traceback" not in shown
    assert shown.rfind(b"\x1b[?25h") > shown.rfind(b"\x1b[?25l") >= 0, "the cursor is back"
    desk.expect_clean(before)


WITH_CHILDREN = (
    """\
import subprocess
from torch.utils.data import DataLoader
subprocess.Popen(["sleep", "1000"])
batches = iter(DataLoader(range(10_000), num_workers=1))
next(batches)
import signal
signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the end of its terminal alone does not end it
"""
    + SLOW_STEPS
)


def test_killed(desk: Desk) -> None:
    """Nobody can clean up then, but the script's processes must not go on using the machine."""
    desk.write(WITH_CHILDREN)
    before = desk.files()
    process = desk.start("profile", "train.py")
    trains(desk, process)
    assert len(desk.running()) >= 4  # hotloop, the script, its worker, its sleep
    process.kill()
    assert process.wait(LONG) == -signal.SIGKILL
    assert not desk.survivors(seconds=4)  # after 8 the script would have trained enough
    assert desk.files() == before
    assert desk.study()["trials"] == []


def test_workers_of_an_interrupted_script(desk: Desk) -> None:
    desk.write(WITH_CHILDREN)
    before = desk.files()
    process = desk.start("profile", "train.py")
    trains(desk, process)
    process.send_signal(signal.SIGINT)
    desk.finish(process).expect(130, "Interrupted.")
    desk.expect_clean(before)


DAEMON = """\
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for descriptor in range(3):
            os.close(descriptor)
        time.sleep(1000)
    os._exit(0)
os.wait()
print("sleeping", flush=True)
time.sleep(float(sys.argv[1]))
"""


@pytest.mark.parametrize("ending", ["itself", "timeout", "interrupt"])
def test_a_daemon_does_not_survive(desk: Desk, ending: str) -> None:
    desk.write(DAEMON)
    before = desk.files()
    naps = {"itself": "1", "timeout": "1000", "interrupt": "1000"}
    process = desk.start("profile", "--timeout", "3s", "train.py", naps[ending])
    sleeps(desk, process)
    assert len(desk.running()) == 3  # hotloop, the script, its daemon
    if ending == "interrupt":
        process.send_signal(signal.SIGINT)
    codes = {"itself": 89, "timeout": 90, "interrupt": 130}
    assert desk.finish(process).code == codes[ending]
    desk.expect_clean(before)
