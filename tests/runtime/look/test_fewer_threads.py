from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.runtime.look import fewer_threads, turns
from hotloop.runtime.look.fewer_threads import FewerThreadsProbe
from hotloop.tried import ThreadsTried


class FakeTorch:
    """Counts threads, and computes nothing."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._C = SimpleNamespace(set_num_threads=self._set)

    def get_num_threads(self) -> int:
        return self.threads

    def _set(self, threads: int) -> None:
        self.threads = threads


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(turns, "perf_counter", made)
    monkeypatch.setattr(fewer_threads, "usable_cores", lambda: 2)
    return made


def steps(probe: FewerThreadsProbe, torch: Any, clock: Clock, count: int) -> list[int]:
    """A step takes as many seconds as there are threads; its number of them is handed back."""
    used = []
    for _ in range(count):
        used.append(torch.threads)
        clock.now += torch.threads
        probe.stepped()
    return used


def test_both_take_turns(clock: Clock) -> None:
    torch = FakeTorch(16)
    probe = FewerThreadsProbe(torch)
    assert probe.is_worth_it
    probe.begin()
    assert steps(probe, torch, clock, 12) == [16] * 3 + [2] * 3 + [16] * 3 + [2] * 3
    probe.end()
    assert torch.threads == 16
    assert probe.tried == ThreadsTried(2, seconds=2.0, own_seconds=16.0)


def test_too_few_steps_tell_nothing(clock: Clock) -> None:
    torch = FakeTorch(16)
    probe = FewerThreadsProbe(torch)
    probe.end()
    assert probe.tried is None and torch.threads == 16
    probe.begin()
    steps(probe, torch, clock, 5)
    probe.end()
    assert probe.tried is None and torch.threads == 16


@pytest.mark.parametrize("threads", [1, 2])
def test_a_thread_a_core_is_left_alone(threads: int, clock: Clock) -> None:
    assert not FewerThreadsProbe(FakeTorch(threads)).is_worth_it
