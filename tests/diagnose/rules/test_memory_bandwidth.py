from __future__ import annotations

import pytest

from hotloop.diagnose.rules.memory_bandwidth import memory_bandwidth
from tests.builders import model
from tests.diagnose.gpu_making import (
    ADD,
    PRODUCT,
    Scene,
    blind,
    case,
    gain,
    look_at,
    operators,
    script,
)

NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>"
FUSED = "triton_poi_fused_add_mul_0"


def chains(scene: Scene, length: int = 6, name: str = ADD) -> None:
    def layer() -> None:
        for _ in range(4):
            scene.run(PRODUCT, 0.5)
            for _ in range(length):
                scene.run(name, 0.2)

    scene.train(layer, layer).step()


def test_of_a_chain_one_kernel_is_left() -> None:
    found = memory_bandwidth(case(chains))
    assert found is not None
    real = gain(chains, lambda scene: chains(scene, length=1))
    assert found.share == pytest.approx(real, rel=0.05)
    assert found.levers == ("compile",)
    assert "up to 6 long" in found.evidence[1]


def test_of_a_long_chain_what_it_computes_is_left() -> None:
    found = memory_bandwidth(case(lambda scene: chains(scene, length=20)))
    assert found is not None
    real = gain(lambda scene: chains(scene, length=20), lambda scene: chains(scene, length=3))
    assert found.share == pytest.approx(real, rel=0.05)


def test_a_norm_ends_a_chain() -> None:
    def job(scene: Scene) -> None:
        scene.train(lambda: [scene.run(name, 1) for name in (ADD, NORM, ADD, ADD, PRODUCT)]).step()
        scene.wait()

    found = memory_bandwidth(case(job))
    assert found is not None
    assert found.share == pytest.approx(2 / 5, abs=0.02)


def test_what_is_fused_already_is_not_fused_again() -> None:
    assert memory_bandwidth(case(lambda scene: chains(scene, name=FUSED))) is None


def test_single_kernels_between_products_leave_nothing_to_fuse() -> None:
    assert memory_bandwidth(case(lambda scene: chains(scene, length=1))) is None


def test_kernels_far_from_the_bandwidth_are_limited_by_something_else() -> None:
    made = case(chains)
    busy = 13.6e-3
    slow = look_at(made, operators=operators(bytes=4.22e12 * busy * 0.05))
    fast = look_at(made, operators=operators(bytes=4.22e12 * busy * 0.8))
    assert memory_bandwidth(slow) is None
    found = memory_bandwidth(fast)
    assert found is not None
    assert "80% of the memory's bandwidth" in found.evidence[2]


def test_a_gpu_that_waits_for_the_cpu_wins_nothing() -> None:
    def starved(scene: Scene) -> None:
        scene.train(lambda: [scene.run(ADD, 0.01, queueing=0.03) for _ in range(100)]).step()

    assert memory_bandwidth(case(starved)) is None


def test_a_compiled_model_has_no_lever_left() -> None:
    found = memory_bandwidth(script(case(chains), models=[model(compiled=True)]))
    assert found is not None and found.levers == ()


def test_nothing_is_said_without_the_gpus_record() -> None:
    assert memory_bandwidth(blind(case(chains))) is None
