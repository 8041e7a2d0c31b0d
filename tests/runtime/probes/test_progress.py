from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotloop.runtime.probes import compile_times, progress
from hotloop.runtime.probes.clock import Numbers
from hotloop.runtime.probes.progress import ProgressProbe
from hotloop.seams import Seams
from hotloop.trial.spec import StopRule

FAR = 1e18


class Optimizer:
    def __init__(self, name: str) -> None:
        self.name = name


class Job:
    """Reaches the seams as a driver would."""

    def __init__(
        self,
        path: Path,
        stop: StopRule,
        deadline: float = FAR,
        few: int = 2,
        watched: bool = False,
    ) -> None:
        self.seams = Seams()
        if watched:  # as the clock does
            self.seams.model.after.append(lambda args, result, began: None)
        self.path = path
        self.ended_at: int | None = None
        numbers = Numbers(lambda optimizer: optimizer.name)
        self.probe = ProgressProbe(str(path), stop, deadline, numbers, self.enough, few)
        self.probe.attach(self.seams)

    def enough(self) -> None:
        if self.ended_at is None:
            self.ended_at = self.probe.steps

    def build(self) -> None:
        for tell in self.seams.optimizer.before:
            tell((), {})

    def step(self, optimizer: Optimizer) -> None:
        for tell in self.seams.step.after:
            tell((optimizer,), None, 0)

    def backward(self) -> None:
        for tell in self.seams.backward.after:
            tell((), None, 0)

    def call(self) -> None:
        for tell in self.seams.model.after:
            tell((), None, 0)

    def told(self) -> int:
        return int(self.path.read_bytes())


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic clock, as a list of one."""
    moment = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: moment[0])
    return moment


ALWAYS: Any = StopRule(steps=10**9)


def test_the_metronome_is_the_optimizer_that_steps_most(tmp_path: Path) -> None:
    job = Job(tmp_path / "progress", ALWAYS)
    critic, generator = Optimizer("critic"), Optimizer("generator")
    job.build()
    for _ in range(3):
        for _ in range(5):
            job.backward()
            job.step(critic)
        job.backward()
        job.step(generator)
    assert job.probe.steps == 15


def test_those_that_take_turns_step_together(tmp_path: Path) -> None:
    job = Job(tmp_path / "progress", ALWAYS)
    clients = [Optimizer(name) for name in "abcd"]
    for _ in range(2):
        for client in clients:
            for _ in range(5):
                job.step(client)
    assert job.probe.steps == 40


def test_without_an_optimizer_it_is_the_backward_pass(tmp_path: Path) -> None:
    job = Job(tmp_path / "progress", ALWAYS)
    for _ in range(4):
        job.backward()
    assert job.probe.steps == 4


def test_a_gradient_taken_apart_is_one_too(tmp_path: Path) -> None:
    job = Job(tmp_path / "progress", ALWAYS)
    for tell in job.seams.grad.after:
        tell((), None, 0)
    assert job.probe.steps == 1


def test_data_that_is_differentiated_is_no_training(tmp_path: Path, now: list[float]) -> None:
    """Forces from energies, for each item of the data, before there is a model or an optimizer."""
    job = Job(tmp_path / "progress", StopRule(warm_up=0, steps=3), watched=True)
    for _ in range(40):
        job.backward()
    assert job.ended_at is None
    now[0] += 2
    job.build()
    optimizer = Optimizer("adam")
    for _ in range(9):
        now[0] += 0.3
        job.backward()
        job.step(optimizer)
    assert job.ended_at == 4


def test_passes_without_a_model_count_when_they_go_on(tmp_path: Path, now: list[float]) -> None:
    """Parameters without a module, updated by hand."""
    job = Job(tmp_path / "progress", StopRule(warm_up=0, steps=3), watched=True)
    for _ in range(40):
        now[0] += 0.3
        job.backward()
    assert job.ended_at is not None
    assert (job.ended_at - 1) * 0.3 == pytest.approx(progress.PATIENCE, abs=0.4)


def test_a_model_that_is_called_between_them_trains(tmp_path: Path, now: list[float]) -> None:
    job = Job(tmp_path / "progress", StopRule(warm_up=0, steps=3), watched=True)
    for _ in range(9):
        job.backward()
        now[0] += 0.3
        job.call()
    assert job.ended_at == 4


def test_a_backward_pass_is_no_step_once_there_is_one(tmp_path: Path) -> None:
    """Gradients may be gathered for long before the first step."""
    job = Job(tmp_path / "progress", ALWAYS)
    job.backward()
    job.build()
    for _ in range(4):
        job.backward()
    assert job.probe.steps == 0


@pytest.mark.parametrize("asked", [1, 5])
def test_ends_after_the_steps_asked_for(asked: int, tmp_path: Path) -> None:
    job = Job(tmp_path / "progress", StopRule(warm_up=2, steps=asked))
    optimizer = Optimizer("one")
    job.build()
    for _ in range(20):
        job.step(optimizer)
    # The first has no beginning that anybody saw.
    assert job.ended_at == 1 + 2 + asked


def test_ends_by_steps_and_time(tmp_path: Path, now: list[float]) -> None:
    rule = StopRule(warm_up=0, min_steps=3, min_seconds=10.0, max_seconds=100.0)
    job = Job(tmp_path / "progress", rule)
    optimizer = Optimizer("one")
    for _ in range(8):
        job.step(optimizer)
        now[0] += 2.0
    assert job.ended_at == 6  # ten seconds after the first


def test_by_its_deadline_two_steps_are_better_than_none(tmp_path: Path, now: list[float]) -> None:
    job = Job(tmp_path / "progress", StopRule(steps=100), deadline=150.0)
    optimizer = Optimizer("one")
    job.build()
    job.step(optimizer)
    now[0] = 151.0
    job.backward()
    assert job.ended_at is None
    job.step(optimizer)
    assert job.ended_at == 2


def test_under_a_plan_the_first_ones_tell_nothing(tmp_path: Path, now: list[float]) -> None:
    job = Job(tmp_path / "progress", StopRule(steps=100), deadline=150.0, few=4)
    optimizer = Optimizer("one")
    job.build()
    for when in (100.0, 101.0, 152.0):  # it compiles in the second
        now[0] = when
        job.step(optimizer)
    assert job.ended_at is None
    now[0] = 153.0
    job.step(optimizer)
    assert job.ended_at == 4


def test_the_parent_is_told_a_few_times_a_second(tmp_path: Path, now: list[float]) -> None:
    job = Job(tmp_path / "progress", ALWAYS)
    optimizer = Optimizer("one")
    job.step(optimizer)
    assert job.told() == 1
    for _ in range(10):
        job.step(optimizer)
    assert job.told() == 1
    now[0] += progress.EVERY_SECONDS
    job.step(optimizer)
    assert job.told() == 12


def test_the_last_word_is_exact(tmp_path: Path, now: list[float]) -> None:
    job = Job(tmp_path / "progress", StopRule(warm_up=0, steps=4))
    optimizer = Optimizer("one")
    for _ in range(5):
        job.step(optimizer)
    assert job.told() == 5


class TestGivingUp:
    """Ten steps of warming up, then measured ones, against a limit of one second a step."""

    RULE = StopRule(warm_up=10, steps=1000, give_up_above=1.0)

    def steps_until_it_ends(
        self, path: Path, now: list[float], lasting: Callable[[int], float], rule: StopRule = RULE
    ) -> int | None:
        job = Job(path, rule)
        optimizer = Optimizer("one")
        for number in range(300):
            now[0] += lasting(number)
            job.step(optimizer)
        return job.ended_at

    def test_a_slow_job_is_measured_for_ten_steps(self, tmp_path: Path, now: list[float]) -> None:
        # The first has no beginning that anybody saw.
        ended = self.steps_until_it_ends(tmp_path / "progress", now, lambda number: 1.1)
        assert ended == 1 + 10 + 10

    def test_a_fast_job_is_measured_to_the_end(self, tmp_path: Path, now: list[float]) -> None:
        assert self.steps_until_it_ends(tmp_path / "progress", now, lambda number: 0.9) is None

    def test_steps_of_the_warm_up_do_not_count(self, tmp_path: Path, now: list[float]) -> None:
        def lasting(number: int) -> float:
            return 60.0 if number <= 10 else 0.9

        assert self.steps_until_it_ends(tmp_path / "progress", now, lasting) is None

    def test_compiling_does_not_count(
        self, tmp_path: Path, now: list[float], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        compiled = [7.0]

        def lasting(number: int) -> float:
            compiled[0] += 40.0 if number == 30 else 0.0
            return 40.5 if number == 30 else 0.9

        monkeypatch.setattr(compile_times, "seconds", lambda: compiled[0])
        assert self.steps_until_it_ends(tmp_path / "progress", now, lasting) is None

    def test_it_is_the_mean_that_counts(self, tmp_path: Path, now: list[float]) -> None:
        def lasting(number: int) -> float:
            return 2.0 if number == 11 else 0.5

        assert self.steps_until_it_ends(tmp_path / "progress", now, lasting) is None

    def test_one_that_becomes_slow_is_given_up_later(
        self, tmp_path: Path, now: list[float]
    ) -> None:
        def lasting(number: int) -> float:
            return 0.5 if number < 31 else 2.0

        # Twenty measured steps have saved ten seconds: ten more use them up, one more is too much.
        ended = self.steps_until_it_ends(tmp_path / "progress", now, lasting)
        assert ended == 1 + 10 + 20 + 11

    def test_a_job_of_many_short_steps_is_given_up_too(
        self, tmp_path: Path, now: list[float]
    ) -> None:
        rule = replace(self.RULE, give_up_above=0.01)
        ended = self.steps_until_it_ends(tmp_path / "progress", now, lambda number: 0.02, rule)
        assert ended is not None
        assert 1 + 10 + 10 <= ended <= 50

    def test_without_a_limit_none_is_given_up(self, tmp_path: Path, now: list[float]) -> None:
        rule = replace(self.RULE, give_up_above=None)
        path = tmp_path / "progress"
        assert self.steps_until_it_ends(path, now, lambda number: 60.0, rule) is None
