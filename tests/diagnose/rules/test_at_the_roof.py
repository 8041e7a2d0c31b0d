from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.diagnose.base import Case
from hotloop.diagnose.rules.at_the_roof import at_the_roof
from hotloop.roof import Roof
from tests.builders import model
from tests.diagnose.gpu_making import PRODUCT, Scene, blind, case, look_at, operators, script


def busy(scene: Scene) -> None:
    scene.train(lambda: scene.run(PRODUCT, 4), lambda: scene.run(PRODUCT, 6)).step()


def idling(scene: Scene) -> None:
    busy(scene)
    scene.wait().cpu(4)


def computing(share: float, made: Case | None = None, **counted: object) -> Case:
    made = made or case(busy)
    flops = {"bfloat16": 742e12 * share * made.figures.step.mean}
    return look_at(made, operators=operators(flops=flops, **counted))


def test_arithmetic_at_the_roof() -> None:
    found = at_the_roof(computing(0.8))
    assert found is not None
    assert not found.is_limit and found.share == 0
    assert found.title == "The job runs at 80% of what this GPU can do (arithmetic)"
    assert "80% of the matrix rate" in found.evidence[0]


def test_bandwidth_at_the_roof() -> None:
    made = case(busy)
    moved = 4.22e12 * 0.9 * made.figures.step.mean
    found = at_the_roof(computing(0.1, made, bytes=moved))
    assert found is not None
    assert found.cause == "memory bandwidth"
    compiled = script(computing(0.1, made, bytes=moved), models=[model(compiled=True)])
    assert at_the_roof(compiled) is None  # it moves less than was counted


def test_more_than_the_memory_gives_comes_out_of_a_cache() -> None:
    made = case(busy)
    moved = 4.22e12 * 1.3 * made.figures.step.mean
    assert at_the_roof(computing(0.1, made, bytes=moved)) is None
    found = at_the_roof(computing(0.8, made, bytes=moved))
    assert found is not None and found.cause == "arithmetic"


def test_a_roof_that_was_measured_beside_other_work_is_none() -> None:
    made = computing(0.8)
    assert made.roof is not None
    assert at_the_roof(replace(made, roof=replace(made.roof, disturbed=True))) is None


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_far_from_it(share: float) -> None:
    assert at_the_roof(computing(share)) is None


def test_a_gpu_that_idles_is_not_there() -> None:
    assert at_the_roof(computing(0.65, case(idling))) is None


def test_nothing_without_what_shows_it() -> None:
    assert at_the_roof(case(busy)) is None
    assert at_the_roof(replace(computing(0.8), roof=None)) is None
    assert at_the_roof(blind(computing(0.8))) is None


def test_a_cpu_has_a_roof_too() -> None:
    made = case(lambda scene: scene.train(lambda: scene.cpu(9)).step(lambda: scene.cpu(1)))
    software = replace(made.measurement.software, device="cpu")
    made = replace(
        blind(made),
        measurement=replace(made.measurement, software=software),
        roof=Roof(cpu_matrix_flops={"float32": 1e11}),
    )
    found = at_the_roof(look_at(made, operators=operators(flops={"float32": 1e11 * 7e-3})))
    assert found is not None
    assert found.title == "The job runs at 70% of what this CPU can do (arithmetic)"
