from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.runtime.look import handing
from hotloop.runtime.look.handing import HandingProbe
from hotloop.seams import Seams

WITH_WORKERS = SimpleNamespace(_workers=["a worker"])


class Asking:
    """A training thread that asks for batches."""

    def __init__(self) -> None:
        self.probe, self._seams = HandingProbe(), Seams()
        self.probe.attach(self._seams)

    def batch(self, computes: float = 0.0, waits: float = 0.0, **other: Any) -> None:
        iterator, batch = other.get("iterator", WITH_WORKERS), other.get("batch", "a batch")
        for before in self._seams.batch.before:
            before((iterator,), {})
        until = time.thread_time() + computes
        while time.thread_time() < until:
            pass
        time.sleep(waits)
        for after in self._seams.batch.after:
            after((iterator,), batch, 0)


def test_computing_counts_and_waiting_does_not() -> None:
    asking = Asking()
    asking.batch(computes=0.02, waits=0.3)
    (seconds,) = asking.probe.seconds
    assert 0.02 <= seconds < 0.3


def test_only_batches_of_workers() -> None:
    asking = Asking()
    asking.batch(iterator=SimpleNamespace())
    asking.batch(iterator=SimpleNamespace(_workers=[]))
    asking.batch(batch=None)  # the end of a pass
    assert asking.probe.seconds == []


def test_not_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handing, "MOST", 3)
    asking = Asking()
    for _ in range(5):
        asking.batch()
    assert len(asking.probe.seconds) == 3
