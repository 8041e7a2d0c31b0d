from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.diagnose.base import Case
from hotloop.diagnose.rules.tiny_batch import tiny_batch
from hotloop.inspection import Inspection
from hotloop.measurement import Software
from tests.builders import Log
from tests.diagnose.making import MAIN, case, hand_drawn, operator_line, operators, samples, users

LAYER = users(20, "Block.forward")


def job(n: int = 2, flops: float = 8e6, elements: int = 512, count: int = 240) -> Case:
    """Steps of 20 ms for n samples, whose arithmetic would take 0.2 ms."""

    def step(log: Log) -> None:
        log.forward(8, n).backward(10).optimizer(2)

    counted = operators(operator_line(LAYER, count, elements), flops={"float32": flops})
    seen = samples((2, 8, [MAIN, LAYER]), (12, 10, [MAIN]))
    return case(hand_drawn(step), Inspection(samples=seen, operators=counted), loaders=[])


def test_a_step_costs_the_same_for_many_more_samples() -> None:
    finding = tiny_batch(job())
    assert finding is not None and finding.is_limit and finding.places == (MAIN,)
    later = (20 + 0.2 * 31) / 64
    assert finding.share == pytest.approx(1 - later / 10, rel=0.02)
    assert "changes the training" in finding.remedy


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
