from __future__ import annotations

import pytest

from hotloop.diagnose.rules.launch_bound import launch_bound
from tests.builders import model, optimizer
from tests.diagnose.gpu_making import ADD, PRODUCT, Scene, blind, case, gain, script


def small(scene: Scene, queueing: float = 0.02, ms: float = 0.005) -> None:
    def some() -> None:
        for _ in range(60):
            scene.run(ADD, ms, queueing)

    scene.train(some, some).step()


def test_many_short_kernels_wait_for_the_cpu() -> None:
    found = launch_bound(case(small))
    assert found is not None
    assert found.levers == ("model_graph", "compile")
    real = gain(small, lambda scene: small(scene, queueing=0.0005))
    assert found.share == pytest.approx(real, rel=0.1)
    assert "120 kernels a step" in found.evidence[0]


def test_updates_are_not_the_models() -> None:
    """A compiled model leaves the optimizer's queueing as it is."""

    def updating(scene: Scene) -> None:
        scene.train(lambda: scene.run(PRODUCT, 2)).step(
            lambda: [scene.run(ADD, 0.005, queueing=0.02) for _ in range(200)]
        )

    assert launch_bound(case(updating)) is None


def test_gradients_are_still_handed_over_one_by_one() -> None:
    made = case(small)
    plain = launch_bound(made)
    found = launch_bound(script(made, optimizers=[optimizer(tensors=100)]))
    assert plain is not None and found is not None
    step = made.figures.step.mean
    assert plain.share - found.share == pytest.approx(100 * 4e-6 / step, rel=0.01)
    assert found.title == plain.title


def test_looking_itself_is_not_held_against_the_job() -> None:
    found = launch_bound(case(small, overhead=0.01))
    assert found is not None
    assert found.share == pytest.approx(0.75, abs=0.03)
    tuned = case(lambda scene: small(scene, queueing=0.004), overhead=0.01)
    assert launch_bound(tuned) is None


def test_a_busy_gpu_does_not_wait() -> None:
    assert launch_bound(case(lambda scene: small(scene, queueing=0.004, ms=0.02))) is None


def test_pauses_between_kernels_are_the_gpus_own() -> None:
    assert launch_bound(case(lambda scene: small(scene, queueing=0.007, ms=0.0055))) is None


def test_a_cpu_that_does_something_else_is_not_queueing() -> None:
    def python(scene: Scene) -> None:
        scene.train(lambda: scene.run(PRODUCT, 2)).cpu(20).step()

    assert launch_bound(case(python)) is None


def test_waiting_for_data_is_something_else() -> None:
    def data(scene: Scene) -> None:
        scene.data(20)
        small(scene, queueing=0.001)

    assert launch_bound(case(data)) is None


def test_a_compiled_model_needs_graphs() -> None:
    found = launch_bound(script(case(small), models=[model(compiled=True)]))
    assert found is not None
    assert found.levers == () and "reduce-overhead" in found.remedy


def test_nothing_is_said_without_the_gpus_record() -> None:
    assert launch_bound(blind(case(small))) is None
