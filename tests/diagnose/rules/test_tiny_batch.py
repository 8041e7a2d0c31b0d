from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hotloop.diagnose.base import Case
from hotloop.diagnose.rules.tiny_batch import tiny_batch
from hotloop.inspection import Inspection, LoaderLook
from hotloop.measurement import Software
from tests.builders import Log, loader
from tests.diagnose.making import MAIN, case, hand_drawn, operator_line, operators, samples, users

LAYER = users(20, "Block.forward")


def job(
    n: int = 2,
    flops: float = 8e6,
    elements: int = 512,
    count: int = 240,
    data: float = 0.0,
    copy: float = 0.0,
    **changes: Any,
) -> Case:
    """Steps of 20 ms for n samples, whose arithmetic would take 0.2 ms; and of loading them."""

    def step(log: Log) -> None:
        if data:
            log.data(data, n)
        log.copy(copy).forward(8, n).backward(10).optimizer(2)

    counted = operators(operator_line(LAYER, count, elements), flops={"float32": flops})
    seen = samples((2, 8, [MAIN, LAYER]), (12, 10, [MAIN]))
    look = Inspection(samples=seen, operators=counted)
    return case(hand_drawn(step), replace(look, **changes), loaders=[loader()] if data else [])


def test_a_step_costs_the_same_for_many_more_samples() -> None:
    finding = tiny_batch(job())
    assert finding is not None and finding.is_limit and finding.places == (MAIN,)
    later = (20 + 0.2 * 31) / 64
    assert finding.share == pytest.approx(1 - later / 10, rel=0.02)
    assert "changes the training" in finding.remedy
    assert finding.title.endswith("for 2 samples")
    assert not any("grow" in line for line in finding.evidence)


def test_one_sample_is_one() -> None:
    finding = tiny_batch(job(n=1))
    assert finding is not None and finding.title.endswith("for 1 sample")


def test_loading_and_copying_grow_with_the_batch() -> None:
    finding = tiny_batch(job(data=15, copy=5))
    assert finding is not None
    later = (40 + (0.2 + 20) * 31) / 32
    assert finding.share == pytest.approx(1 - later / 40, rel=0.02)
    assert "loading and copying, 20.0 ms a step, grow with the batch" in finding.evidence


def test_a_job_that_does_little_but_load_wins_nothing() -> None:
    assert tiny_batch(job(data=400)) is None


def test_nor_does_one_whose_workers_have_no_time_left() -> None:
    """Two of them need 19.8 ms to load what a step of 20 ms takes."""
    busy = LoaderLook(0, item_seconds=[0.0198] * 4, batch_items=[2, 2])
    assert tiny_batch(job(data=0.1, loaders=[busy])) is None


@pytest.mark.parametrize(
    "other",
    [
        job(n=32),
        job(flops=400e6),
        job(elements=10**5),
        job(count=3000),
        replace(job(), roof=None),
        replace(job(), inspection=None),
    ],
    ids=["many samples", "arithmetic", "large samples", "a loop", "no roof", "not looked into"],
)
def test_it_says_nothing(other: Case) -> None:
    assert tiny_batch(other) is None


def test_on_a_gpu_it_is_a_remark() -> None:
    made = job()
    on_gpu = replace(made.measurement, software=Software(device="NVIDIA H200"))
    assert made.roof is not None
    roof = replace(made.roof, matrix_flops={"float32": 100e9})
    finding = tiny_batch(replace(made, measurement=on_gpu, roof=roof))
    assert finding is not None and not finding.is_limit
