from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.diagnose.base import Case
from hotloop.diagnose.rules.model_on_cpu import model_on_cpu
from tests.builders import model
from tests.diagnose.gpu_making import H200, PRODUCT, Scene, blind, case, look_at, operators, script


def forgotten(**changes: object) -> Case:
    """100 ms a step: 10 for data and 90 that a GPU would need one for."""

    def job(scene: Scene) -> None:
        scene.data(10).train(lambda: scene.cpu(40), lambda: scene.cpu(40)).step(
            lambda: scene.cpu(10)
        )

    made = blind(case(job))
    software = replace(made.measurement.software, device="cpu")
    made = replace(made, measurement=replace(made.measurement, software=software))
    made = look_at(made, operators=operators(count=60, flops={"float32": 51e12 * 0.25 * 1e-3}))
    return replace(script(made, models=[model(devices=["cpu"])]), **changes)  # type: ignore[arg-type]


def test_a_model_beside_an_idle_gpu() -> None:
    found = model_on_cpu(forgotten())
    assert found is not None
    assert found.title == "The model trains on the CPU, beside 1 idle GPU"
    assert found.share == pytest.approx(0.9 - 0.01, abs=0.002)


def test_however_little_is_computed_it_has_to_be_queued() -> None:
    made = look_at(forgotten(), operators=operators(count=2_500, flops={"float32": 1.0}))
    found = model_on_cpu(made)
    assert found is not None
    assert found.share == pytest.approx(0.9 - 0.3, abs=0.002)
    assert H200.launch_seconds == 4e-6


def test_without_a_roof_nothing_is_said_of_the_gpus_time() -> None:
    found = model_on_cpu(forgotten(roof=None))
    assert found is not None
    assert found.share == pytest.approx(0.9, abs=0.002)
    assert len(found.evidence) == 2


def test_without_a_gpu_the_cpu_is_the_place() -> None:
    assert model_on_cpu(forgotten(gpus=0)) is None


def test_without_a_model_nothing_is_known() -> None:
    assert model_on_cpu(script(forgotten(), models=[])) is None


class TestAPart:
    def job(self, scene: Scene) -> None:
        scene.train(lambda: scene.run(PRODUCT, 5).wait(".cpu()").cpu(5)).step()

    def test_is_told(self) -> None:
        made = script(case(self.job), models=[model(devices=["cuda:0", "cpu"])])
        found = model_on_cpu(made)
        assert found is not None
        assert found.cause == "partly" and found.is_limit
        assert found.share == pytest.approx(0.5, abs=0.02)

    def test_is_a_remark_where_its_price_is_not_known(self) -> None:
        made = script(blind(case(self.job)), models=[model(devices=["cuda:0", "cpu"])])
        found = model_on_cpu(made)
        assert found is not None
        assert not found.is_limit and found.share == 0

    def test_a_model_on_the_gpu_is_where_it_should_be(self) -> None:
        assert model_on_cpu(case(self.job)) is None
