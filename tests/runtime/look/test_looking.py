from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hotloop.inspection import Inspection
from hotloop.runtime.look.looking import Looking
from hotloop.runtime.watching import Watch
from hotloop.trial.spec import Look

LOOK = Look("", warm_up=3, steps=4, seconds=0.0, most_seconds=60.0, counted_steps=2)


class Training:
    """A job of a few lines, each step told to what looks into it."""

    def __init__(self, torch: Any, folder: Path, look: Look) -> None:
        self._torch = torch
        self.watch = Watch(torch)
        told = Look(**{**vars(look), "folder": str(folder)})
        self.looking = Looking(torch, self.watch, told)
        self.looking.attach()
        self.watch.driver.attach()
        self.model = torch.nn.Linear(8, 4)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.made = 0

    def step(self, seconds: float = 0.0) -> bool:
        """Whether all has been seen after it."""
        self.optimizer.zero_grad()
        self.model(self._torch.ones(2, 8)).sum().backward()
        self.optimizer.step()
        self.made += 1
        return self.looking.satisfied(self.made, seconds)

    def seen(self) -> Inspection:
        self.watch.driver.detach()
        return self.looking.inspection()


@pytest.fixture
def train(torch: Any, unharmed: None, tmp_path: Path) -> Iterator[Callable[..., Training]]:
    made: list[Training] = []

    def begin(look: Look = LOOK) -> Training:
        made.append(Training(torch, tmp_path, look))
        return made[-1]

    yield begin
    for one in made:
        one.seen()


def test_kinds_of_looking_take_turns(train: Callable[..., Training]) -> None:
    job = train()
    while not job.step():
        pass
    found = job.seen()
    assert job.made == 3 + 4 + 2  # without a GPU nothing is profiled
    assert found.steps == 4 + 2
    assert found.operators is not None and found.operators.steps == 2
    assert sum(found.operators.flops.values()) > 0
    assert (found.kernels, found.allocator, found.scaler_skips) == (None, None, None)
    assert (found.problems, found.compilations) == ([], [])
    assert len(found.host_bytes) == 6 and min(found.host_bytes) > 0
    assert found.device_bytes == []


@pytest.mark.parametrize("forgets", [False, True])
def test_steps_with_an_evaluation_are_not_counted(
    torch: Any, train: Callable[..., Training], forgets: bool
) -> None:
    """Whether or not it turns gradients off."""
    plain = train()
    while not plain.step():
        pass
    usual = plain.seen().operators
    job = train()
    while not job.step():
        if job.made % 8 == 0:  # in the second of the counted steps
            with torch.set_grad_enabled(forgets):
                job.model(torch.ones(100, 8))
    found = job.seen().operators
    assert found is not None and usual is not None
    assert (found.steps, found.flops) == (usual.steps, usual.flops)
    assert job.made == plain.made + 2


def test_what_every_step_does_without_gradients_is_counted(
    torch: Any, train: Callable[..., Training]
) -> None:
    job = train()
    ended = False
    while not ended:
        with torch.no_grad():
            job.model(torch.ones(100, 8))
        ended = job.step()
    assert job.made == 3 + 4 + 2


def test_a_slow_job_is_not_looked_at_for_ever(train: Callable[..., Training]) -> None:
    job = train(Look("", warm_up=2, steps=1000, most_seconds=10.0, counted_steps=1000))
    for seconds in (1.0, 2.0, 3.0):
        assert not job.step(seconds)
    assert not job.step(12.5)  # the samples are enough
    assert job.step(20.0)


def test_what_was_seen_until_a_script_ended(train: Callable[..., Training]) -> None:
    job = train()
    for _ in range(5):
        assert not job.step()
    found = job.seen()
    assert found.steps == 2
    assert found.operators is None


def test_another_optimizers_step_is_no_step(train: Callable[..., Training]) -> None:
    job = train()
    while not job.step():
        job.looking.satisfied(job.made, 0.0)
    assert job.seen().steps == 6


def test_a_part_that_cannot_be_looked_at_is_named(
    train: Callable[..., Training], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = train()
    monkeypatch.setattr(job.looking, "_uses_device", lambda: True)

    def refuse() -> None:
        raise RuntimeError("no counters here")

    monkeypatch.setattr(job.looking._kernel_probe, "start", refuse)
    while not job.step():
        pass
    found = job.seen()
    assert "kernels on the device: RuntimeError: no counters here" in found.problems
    assert found.operators is not None


def test_kernels_are_profiled_one_step_later(
    train: Callable[..., Training], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = train()
    said: list[tuple[str, int]] = []
    probe = job.looking._kernel_probe
    monkeypatch.setattr(job.looking, "_uses_device", lambda: True)
    monkeypatch.setattr(probe, "start", lambda: said.append(("start", job.made)))
    monkeypatch.setattr(probe, "begin", lambda: said.append(("begin", job.made)))
    monkeypatch.setattr(probe, "stop", lambda steps: said.append(("stop", job.made)))
    while not job.step():
        pass
    assert said == [("start", 7), ("begin", 8), ("stop", 12)]
