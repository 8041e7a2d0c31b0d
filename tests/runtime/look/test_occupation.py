from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from hotloop.runtime.look import occupation
from hotloop.runtime.look.occupation import Occupation


def busy(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def spent(work: object) -> tuple[float, float]:
    """Seconds that passed, and that the thread was occupied."""
    assert callable(work)
    mine = Occupation()
    began, before = time.perf_counter(), mine.seconds()
    work()
    return time.perf_counter() - began, mine.seconds() - before


def test_who_sleeps_is_not_occupied() -> None:
    took, occupied = spent(lambda: time.sleep(0.05))
    assert occupied < took / 2


def test_who_computes_is_even_where_others_want_the_same_core() -> None:
    if not hasattr(os, "sched_setaffinity") or not os.path.exists(occupation.SCHEDULER):
        pytest.skip("the kernel does not tell")
    before = os.sched_getaffinity(0)
    core = {min(before)}
    rivals = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        for rival in rivals:
            os.sched_setaffinity(rival.pid, core)
        os.sched_setaffinity(0, core)
        took, occupied = spent(lambda: busy(0.3))
    finally:
        os.sched_setaffinity(0, before)
        for rival in rivals:
            rival.kill()
            rival.wait()
    assert occupied > 0.8 * took


def test_without_the_kernels_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(occupation, "SCHEDULER", "/nowhere/schedstat")
    took, occupied = spent(lambda: busy(0.02))
    assert 0 < occupied <= 1.1 * took
