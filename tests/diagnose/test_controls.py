"""A job that is as it should be: no rule of the GPU's finds a limit."""

from __future__ import annotations

import pytest

from hotloop.diagnose.base import Case, Rule
from hotloop.diagnose.rules.allocator_thrash import allocator_thrash
from hotloop.diagnose.rules.at_the_roof import at_the_roof
from hotloop.diagnose.rules.fp32_matmul import fp32_matmul
from hotloop.diagnose.rules.handwritten_attention import handwritten_attention
from hotloop.diagnose.rules.launch_bound import launch_bound
from hotloop.diagnose.rules.layout_conversions import layout_conversions
from hotloop.diagnose.rules.memory_bandwidth import memory_bandwidth
from hotloop.diagnose.rules.memory_capacity import memory_capacity
from hotloop.diagnose.rules.model_on_cpu import model_on_cpu
from hotloop.diagnose.rules.pageable_copies import pageable_copies
from hotloop.diagnose.rules.synchronisation import synchronisation
from hotloop.inspection import Allocator
from hotloop.measurement import Precision
from tests.builders import model
from tests.diagnose.gpu_making import (
    PINNED,
    PRODUCT,
    Scene,
    blind,
    case,
    look_at,
    operators,
    script,
)

RULES: tuple[Rule, ...] = (
    allocator_thrash,
    fp32_matmul,
    handwritten_attention,
    launch_bound,
    layout_conversions,
    memory_bandwidth,
    memory_capacity,
    model_on_cpu,
    pageable_copies,
    synchronisation,
)
FLASH = "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>>"
FUSED = "triton_poi_fused_add_gelu_mul_7"
ADAM = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor>"


def transformer(scene: Scene) -> None:
    def layers() -> None:
        for _ in range(8):
            scene.run(PRODUCT, 0.9).run(FLASH, 0.3).run(FUSED, 0.2).run(PRODUCT, 0.9).run(
                FUSED, 0.2
            )

    scene.data(0.05).copy(0.1, 5_000_000, PINNED).train(layers, layers)
    scene.step(lambda: scene.run(ADAM, 0.5))


def control(overhead: float = 0.0) -> Case:
    made = case(transformer, overhead=overhead)
    flops = {"bfloat16": 742e12 * 0.62 * made.figures.step.mean}
    made = look_at(made, operators=operators(flops=flops), allocator=Allocator(0, 0, 10, 9))
    compiled = [model(devices=["cuda:0"], compiled=True)]
    return script(made, models=compiled, precision=Precision(autocast="bfloat16", tf32_matmul=True))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("overhead", [0.0, 0.05])
def test_nothing_is_claimed(rule: Rule, overhead: float) -> None:
    assert rule(control(overhead)) is None
    assert rule(blind(control(overhead))) is None


def test_but_that_it_is_at_the_roof() -> None:
    found = at_the_roof(control())
    assert found is not None and not found.is_limit
