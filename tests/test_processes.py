"""What processes hold, by what the kernel says of real ones."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hotloop import processes

pytestmark = pytest.mark.skipif(
    not processes.SAYS_WHAT_IS_SHARED, reason="nobody says what is shared"
)
MIB = 2**20

# 80 MiB before it forks. The child, from another thread, holds 40 more for a moment.
FAMILY = """\
import os, threading, time
def child():
    pid = os.fork()
    if pid == 0:
        own = bytearray(b"x") * (40 * 2**20)
        del own
        print(os.getpid(), flush=True)
        time.sleep(600)
inherited = bytearray(b"x") * (80 * 2**20)
thread = threading.Thread(target=child)
thread.start()
time.sleep(600)
"""


@contextmanager
def family() -> Iterator[tuple[int, int]]:
    made = subprocess.Popen(
        [sys.executable, "-S", "-c", FAMILY], stdout=subprocess.PIPE, start_new_session=True
    )
    assert made.stdout is not None
    try:
        yield made.pid, int(made.stdout.readline())
    finally:
        os.killpg(made.pid, 9)
        made.wait()
        made.stdout.close()


def test_what_a_child_shares_counts_once_and_what_it_held_is_remembered() -> None:
    with family() as (main, child):
        assert processes.descendants(main) == {child: main}  # although a thread started it
        peak = processes.peak_of(child)
        assert peak is not None and peak > 120 * MIB
        assert 38 * MIB < processes.held_by({child: main}) < 60 * MIB


def test_where_nobody_says_what_is_shared_all_of_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    read = processes._read
    monkeypatch.setattr(
        processes, "_read", lambda path: None if path.endswith("smaps_rollup") else read(path)
    )
    with family() as (main, child):
        assert processes.held_by({child: main}) == 0  # others tell: this one is about to end
    monkeypatch.setattr(processes, "SAYS_WHAT_IS_SHARED", False)
    with family() as (main, child):
        assert processes.held_by({child: main}) == processes.peak_of(child)


def test_a_process_that_is_about_to_become_another_holds_nothing() -> None:
    """By vfork it has its parent's memory: for the kernel nobody shares that with anybody."""
    assert processes.held_by({os.getpid(): os.getpid()}) == 0


def test_who_outlives_its_parent_does_not_hold_what_that_held() -> None:
    with family() as (main, child):
        os.kill(main, 9)
        os.waitid(os.P_PID, main, os.WEXITED | os.WNOWAIT)
        assert processes.held_by({child: main}) == 0


def test_who_is_gone_holds_nothing() -> None:
    with family() as (main, child):
        pass
    assert processes.descendants(main) is None
    assert processes.held_by({child: main, main: os.getpid()}) == 0
    assert processes.peak_of(main) is None and processes.resident(main) is None
