"""Looking after the processes of a trial: their memory (`tree`), and their end (`reaping`)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hotloop.trial import reaping
from hotloop.trial.tree import ProcessTree

# A process that starts another and says its number. The other may leave the group; or stay, and be
# deaf to a polite end and without the mark.
PARENT = """\
import signal, subprocess, sys, time
sleep = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
options = {{
    "stays": {{}},
    "leaves": {{"start_new_session": True}},
    "is deaf": {{
        "env": {{}}, "preexec_fn": lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN)
    }},
}}
child = subprocess.Popen(sleep, **options["{how}"])
print(child.pid, flush=True)
time.sleep(600)
"""

needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc")


def start(mark: str, how: str) -> tuple[subprocess.Popen[bytes], int]:
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", PARENT.format(how=how)],
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, reaping.MARK: mark},
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


@dataclass
class Family:
    process: subprocess.Popen[bytes]
    child: int
    mark: str

    def end(self) -> None:
        reaping.end(self.process, self.mark)


@pytest.fixture
def family() -> Iterator[Callable[..., Family]]:
    families: list[Family] = []

    def make(how: str = "stays") -> Family:
        mark = uuid.uuid4().hex  # of its own: other sessions may be at the same tests
        families.append(Family(*start(mark, how), mark))
        return families[-1]

    yield make
    for one in families:
        if one.process.returncode is None:
            one.end()


def lives(pid: int) -> bool:
    """A zombie does not: it waits for whoever adopted it."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 20
    while lives(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not lives(pid)


@needs_proc
@pytest.mark.parametrize("how", ["stays", "leaves", "is deaf"])
def test_nobody_is_left_behind(how: str, family: Callable[..., Family]) -> None:
    one, stranger = family(how), family()
    assert lives(one.child)
    one.end()
    assert one.process.returncode is not None
    assert gone(one.child)
    assert stranger.process.poll() is None
    assert lives(stranger.child)


def test_a_process_that_has_ended_is_no_problem() -> None:
    process = subprocess.Popen([sys.executable, "-S", "-c", ""], start_new_session=True)
    process.wait()
    reaping.end(process, uuid.uuid4().hex)
    assert process.returncode == 0


@needs_proc
def test_the_tree_knows_the_memory_of_everyone(family: Callable[..., Family]) -> None:
    one = family("leaves")
    tree = ProcessTree(one.process.pid)
    assert tree.main_now is None
    tree.look()
    assert tree.main_now is not None and tree.main_now > 2**20
    if Path(f"/proc/{one.process.pid}/task/{one.process.pid}/children").exists():
        assert set(tree.worker_peaks) == {one.child}
        assert tree.worker_peaks[one.child] > 0


@needs_proc
def test_the_tree_remembers_who_has_gone(family: Callable[..., Family]) -> None:
    one = family()
    tree = ProcessTree(one.process.pid)
    tree.look()
    before = tree.main_now, dict(tree.worker_peaks)
    one.end()
    tree.look()
    assert (tree.main_now, tree.worker_peaks) == before
