"""Examinations of jobs without memory: blocks computed again, and noise that takes none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hotloop.evidence import Evidence
from hotloop.levers.base import Lever
from hotloop.levers.checkpoint_blocks import CheckpointBlocks
from hotloop.runtime.exam.examination import Examination
from hotloop.runtime.watching import Watch
from hotloop.trial.spec import Exam

Examined = Callable[..., Evidence]


class Enough(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def blocks(torch: Any) -> Iterator[Any]:
    from tests.levers import block_jobs

    yield block_jobs
    block_jobs.put_back()


@pytest.fixture
def examined(torch: Any, pin: Any, blocks: Any, tmp_path: Path) -> Examined:
    def run(*levers: Lever, **changes: Any) -> Evidence:
        pin()
        given: dict[str, Any] = {"is_reference": False, "steps": 12, "forced": (6, 9), **changes}
        watch = Watch(torch)
        for lever in levers:
            lever.apply(torch, watch.seams)
        exam = Exam(folder=str(tmp_path / "reference"), **given)
        examination = Examination(torch, watch, exam, enough)
        examination.attach()
        watch.driver.attach()
        try:
            with suppress(Enough):
                blocks.train("BatchNorm1d", steps=1000)
        finally:
            watch.driver.detach()
            blocks.put_back()
        return examination.evidence()

    def enough() -> None:
        raise Enough

    return run


def test_blocks_with_dropout_computed_again_are_the_same_training(examined: Examined) -> None:
    """The lever hears of a model's first call and the plain job does not: that is no difference."""
    reference = examined(is_reference=True)
    lever = CheckpointBlocks()
    found = examined(lever)
    assert lever.receipt().applied
    assert found.structure == reference.structure
    assert {given.step for given in found.structure.given} == set(range(1, 12))
    assert len(found.forced) == 2
    assert all(one.difference == 0.0 for one in found.differences)
    assert not found.problem


def test_a_job_that_dies_in_its_first_step_is_seen_from_its_first_call_on(
    examined: Examined,
) -> None:
    whole = examined(is_reference=True, at_once=True)
    assert {given.step for given in whole.structure.given} == set(range(12))
    assert examined(at_once=True).structure == whole.structure


def test_noise_in_the_weights_alone_is_noise_too(examined: Examined) -> None:
    examined(is_reference=True)
    for spare in (False, True):
        found = examined(noise_bits=10, spare=spare)
        gradients = [one for one in found.differences if one.quantity == "gradient"]
        apart = [one.difference / one.reference for one in gradients if one.difference]
        assert 1e-5 < max(apart) < 0.5
    exact = examined(spare=True)
    assert all(one.difference == 0.0 for one in exact.differences)
