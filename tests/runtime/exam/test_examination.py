from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hotloop.evidence import Evidence
from hotloop.runtime.exam.examination import Examination
from hotloop.runtime.watching import Watch
from hotloop.trial.spec import Exam


class Enough(BaseException):
    """Stands for the end of the process."""


Examined = Callable[..., Evidence]


@pytest.fixture
def examined(torch: Any, unharmed: None, pin: Any, tmp_path: Path) -> Examined:
    """Runs a job under an examination of its own, as a child would."""

    def run(job: Callable[[], Any], **changes: Any) -> Evidence:
        pin()  # takes off what the examination before has pinned
        given: dict[str, Any] = {"is_reference": False, "steps": 12, "forced": (6, 9), **changes}
        if given["is_reference"]:
            shutil.rmtree(tmp_path / "reference", ignore_errors=True)
        exam = Exam(folder=str(tmp_path / "reference"), **given)
        watch = Watch(torch)
        examination = Examination(torch, watch, exam, enough)
        examination.attach()
        watch.driver.attach()
        try:
            with suppress(Enough):
                job()
        finally:
            watch.driver.detach()
        return examination.evidence()

    def enough() -> None:
        raise Enough

    return run


def plainly(jobs: Any) -> Callable[[], None]:
    return lambda: jobs.train(jobs.Net(), steps=1000)


def in_turns(jobs: Any, turns: tuple[int, ...]) -> Callable[[], None]:
    """Two models with an optimizer each, which step in these turns, over and over."""

    def job() -> None:
        models = [jobs.Net(), jobs.Net(width=5)]
        optimizers = [jobs.sgd(model) for model in models]
        for _ in range(1000):
            for turn in turns:
                optimizers[turn].zero_grad()
                jobs.plain_loss(models[turn], *jobs.batch()).backward()
                optimizers[turn].step()

    return job


def test_the_same_job_again_is_exactly_the_same(jobs: Any, examined: Examined) -> None:
    reference = examined(plainly(jobs), is_reference=True)
    again = examined(plainly(jobs))
    assert (reference.forced, again.forced) == ([6, 9], [6, 9])
    assert again.structure == reference.structure
    assert len(again.structure.steps) == 12
    assert len(again.differences) == 2 * 2 * 4
    assert all(one.difference == 0.0 for one in again.differences)
    assert (reference.problem, again.problem) == ("", "")


def test_noise_disturbs_the_steps_that_are_compared_and_no_others(
    jobs: Any, examined: Examined
) -> None:
    examined(plainly(jobs), is_reference=True)
    fine = examined(plainly(jobs), noise_bits=23)
    coarse = examined(plainly(jobs), noise_bits=7)
    for one, other in zip(fine.differences, coarse.differences, strict=True):
        if one.quantity == "gradient" and one.reference:
            assert one.difference is not None
            assert other.difference is not None
            assert one.difference < 1e-4 * one.reference < other.difference
    assert fine.structure.given == coarse.structure.given


def test_from_another_seed_nothing_is_forced(jobs: Any, examined: Examined) -> None:
    reference = examined(plainly(jobs), is_reference=True)
    other = examined(plainly(jobs), seed=1, forced=())
    assert (other.forced, other.differences) == ([], [])
    assert other.structure.given != reference.structure.given


@pytest.mark.parametrize("turns", [(0, 1), (0, 0, 1), (0, 1, 1)])
def test_of_two_optimizers_a_whole_round_is_compared(
    turns: tuple[int, ...], jobs: Any, examined: Examined
) -> None:
    reference = examined(in_turns(jobs, turns), is_reference=True, forced=(6,))
    again = examined(in_turns(jobs, turns), forced=(6,))
    assert reference.forced == again.forced
    compared = [again.structure.steps[step].optimizer for step in again.forced]
    assert sorted(compared) == sorted(turns)
    assert all(one.difference == 0.0 for one in again.differences)


def one_for_each(torch: Any, jobs: Any, called: bool, turn: int) -> Callable[[], None]:
    """Parameters of which each has an optimizer, in an order that begins elsewhere in every run."""

    def job() -> None:
        model = jobs.Net()
        weights = list(model.parameters())
        optimizers = [torch.optim.Adam([one]) for one in weights[turn:] + weights[:turn]]
        for _ in range(1000):
            x, y = jobs.batch()
            jobs.plain_loss(model if called else model.forward, x, y).backward()
            for optimizer in optimizers:
                optimizer.step()
            model.zero_grad()

    return job


@pytest.mark.parametrize("called", [True, False], ids=["called", "by its forward()"])
def test_optimizers_that_step_in_another_order_are_known_by_what_they_train(
    called: bool, torch: Any, jobs: Any, examined: Examined
) -> None:
    steps = {"steps": 24, "forced": (12,)}
    reference = examined(one_for_each(torch, jobs, called, 0), is_reference=True, **steps)
    again = examined(one_for_each(torch, jobs, called, 3), **steps)
    assert (reference.problem, again.problem) == ("", "")
    assert sorted(again.forced) == reference.forced == [12, 13, 14, 15]
    assert len(again.differences) == 2 * 4
    assert all(one.difference == 0.0 for one in again.differences)
    assert any(one.reference > 0.0 for one in again.differences)


def test_a_round_that_never_ends_is_broken_off(jobs: Any, examined: Examined) -> None:
    def lopsided() -> None:
        one, two = jobs.Net(), jobs.Net(width=5)
        first, second = jobs.sgd(one), jobs.sgd(two)
        for number in range(1000):
            model, optimizer = (two, second) if number == 1 else (one, first)
            jobs.plain_loss(model, *jobs.batch()).backward()
            optimizer.step()

    found = examined(lopsided, is_reference=True, steps=4, forced=(2,))
    assert 4 <= len(found.structure.steps) <= 24


def test_a_step_that_a_scaler_skips_is_not_compared(
    torch: Any, jobs: Any, examined: Examined
) -> None:
    def job(overflow_at: int | None) -> Callable[[], None]:
        def train() -> None:
            model = jobs.Net()
            optimizer = jobs.sgd(model)
            scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
            for number in range(1000):
                optimizer.zero_grad()
                loss = jobs.plain_loss(model, *jobs.batch())
                factor = float("inf") if number == overflow_at else 1.0
                scaler.scale(loss * factor).backward()
                scaler.step(optimizer)
                scaler.update()

        return train

    examined(job(None), is_reference=True)
    found = examined(job(overflow_at=6))
    assert not found.structure.steps[6].taken
    assert (found.forced, found.problem) == ([9], "")
    assert {one.step for one in found.differences} == {9}
    examined(job(overflow_at=6), is_reference=True)
    assert examined(job(None)).forced == [9]


def test_whether_a_model_draws_random_numbers_is_seen(
    torch: Any, jobs: Any, examined: Examined
) -> None:
    class Noisy(jobs.Net):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return super().forward(x + torch.randn_like(x))

    assert examined(lambda: jobs.train(Noisy(), steps=20), is_reference=True).draws
    dropping = torch.nn.Sequential(torch.nn.Dropout(0.5), jobs.Net()).train()
    assert not examined(lambda: jobs.train(dropping, steps=20), is_reference=True).draws
