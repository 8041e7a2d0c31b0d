from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from hotloop.runtime.look import keeping
from hotloop.runtime.look.keeping import KeepingProbe
from hotloop.seams import Seams


class Training:
    """Passes over a loader, as the seams tell them, on a clock of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.probe, self._seams = KeepingProbe(), Seams()
        self.probe.attach(self._seams)
        self.now = 100.0
        monkeypatch.setattr(keeping, "perf_counter", lambda: self.now)

    def begin_a_pass(self, loader: Any) -> None:
        for before in self._seams.loader.before:
            before((loader,), {})

    def a_pass(self, loader: Any, steps: int = 2, seconds: float = 0.5) -> None:
        self.begin_a_pass(loader)
        for _ in range(steps):
            self.now += seconds
            self.probe.stepped()


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> Training:
    return Training(monkeypatch)


def loader(workers: int = 2, **settings: Any) -> DataLoader[Any]:
    return DataLoader(TensorDataset(torch.zeros(4, 1)), 2, num_workers=workers, **settings)


def test_workers_are_kept_while_it_is_tried(training: Training) -> None:
    made = loader()
    training.a_pass(made)
    training.a_pass(made)
    assert training.probe.is_worth_it and not made.persistent_workers
    training.probe.begin()
    training.a_pass(made, seconds=9.0)  # starts the workers
    assert made.persistent_workers and training.probe.seconds == []
    training.a_pass(made, seconds=0.25)
    training.a_pass(made, steps=4, seconds=0.5)
    training.begin_a_pass(made)
    assert training.probe.seconds == pytest.approx([0.25, 0.5])


def test_a_loader_that_was_told_so_keeps_them(training: Training) -> None:
    made = loader()
    training.a_pass(made)
    training.probe.begin()
    training.begin_a_pass(made)
    first: Any = iter(made)
    pids = [worker.pid for worker in first._workers]
    assert len(list(first)) == 2
    again: Any = iter(made)
    assert [worker.pid for worker in again._workers] == pids
    again._shutdown_workers()


@pytest.mark.parametrize(
    "made",
    [
        pytest.param([loader(workers=0)], id="no workers"),
        pytest.param([loader(persistent_workers=True)], id="kept already"),
        pytest.param([loader(), loader()], id="two of them"),
        pytest.param([], id="none"),
    ],
)
def test_where_it_is_not_tried(training: Training, made: list[DataLoader[Any]]) -> None:
    for _ in range(3):
        for one in made:
            training.a_pass(one)
    assert not training.probe.is_worth_it


def test_passes_have_to_be_short(training: Training) -> None:
    made = loader()
    training.a_pass(made)
    training.a_pass(made)
    training.probe.forget()  # they began before anybody looked
    training.a_pass(made)
    assert not training.probe.is_worth_it
    training.a_pass(made)
    assert training.probe.is_worth_it


def test_another_loader_is_left_alone(training: Training) -> None:
    made, other = loader(), loader()
    training.a_pass(made)
    training.a_pass(made)
    training.probe.begin()
    training.a_pass(other)
    assert not other.persistent_workers
