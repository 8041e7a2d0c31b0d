from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.runtime.look import alone
from hotloop.runtime.look.alone import AloneProbe
from hotloop.seams import Seams


class Worker:
    """A process that does nothing but be there."""

    def __init__(self) -> None:
        self.pid = os.fork()
        if self.pid == 0:
            while True:
                time.sleep(60)

    @property
    def stands_still(self) -> bool:
        state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state == "T"

    def end(self) -> None:
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


class Loop:
    """The calls of a training loop, as the seams tell them."""

    def __init__(self, worker: Worker) -> None:
        self.probe, self._seams = AloneProbe(), Seams()
        self.probe.attach(self._seams)
        self._iterator = SimpleNamespace(_workers=[worker])

    def batch(self, batch: Any = "a batch") -> None:
        for before in self._seams.batch.before:
            before((self._iterator,), {})
        for after in self._seams.batch.after:
            after((self._iterator,), batch, 0)

    def begin_a_pass(self) -> None:
        for before in self._seams.loader.before:
            before((object(),), {})


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.end()


def soon(worker: Worker, stands_still: bool) -> bool:
    until = time.monotonic() + 10
    while worker.stands_still is not stands_still and time.monotonic() < until:
        time.sleep(0.001)
    return worker.stands_still is stands_still


def test_workers_are_held_from_a_batch_to_the_step(worker: Worker) -> None:
    loop = Loop(worker)
    loop.probe.begin()
    loop.probe.stepped()
    for _ in range(2):
        loop.batch()
        assert soon(worker, stands_still=True)
        time.sleep(0.01)
        loop.probe.stepped()
        assert soon(worker, stands_still=False)
    assert len(loop.probe.seconds) == 2
    assert min(loop.probe.seconds) >= 0.01


def test_the_step_in_which_it_begins_is_not_whole(worker: Worker) -> None:
    loop = Loop(worker)
    loop.probe.begin()
    loop.batch()
    loop.probe.stepped()
    assert loop.probe.seconds == []


def test_a_step_of_two_batches_is_one(worker: Worker) -> None:
    loop = Loop(worker)
    loop.probe.begin()
    loop.probe.stepped()
    loop.batch()
    loop.batch()
    loop.probe.stepped()
    assert len(loop.probe.seconds) == 1


@pytest.mark.parametrize("call", ["batch", "begin_a_pass"])
def test_who_asks_workers_lets_them_go(worker: Worker, call: str) -> None:
    loop = Loop(worker)
    loop.probe.begin()
    loop.batch()
    assert soon(worker, stands_still=True)
    if call == "batch":
        loop.batch(batch=None)  # the pass is over
    else:
        loop.begin_a_pass()
    assert soon(worker, stands_still=False)


def test_nobody_is_held_before_or_after(worker: Worker) -> None:
    loop = Loop(worker)
    loop.batch()
    assert not worker.stands_still
    loop.probe.begin()
    loop.batch()
    loop.probe.end()
    assert soon(worker, stands_still=False)
    loop.batch()
    assert not worker.stands_still


def test_nobody_is_held_for_ever(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alone, "LONGEST", 0.05)
    loop = Loop(worker)
    loop.probe.begin()
    loop.probe.stepped()
    loop.batch()
    assert soon(worker, stands_still=True)
    assert soon(worker, stands_still=False)
    loop.probe.stepped()
    assert loop.probe.seconds == []


def test_a_worker_that_is_gone_is_not_missed(worker: Worker) -> None:
    loop = Loop(worker)
    loop._iterator._workers = [SimpleNamespace(pid=2**22 - 1)]
    loop.probe.begin()
    loop.batch()
    loop.probe.stepped()
    assert loop.probe.seconds == []
