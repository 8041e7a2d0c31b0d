from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.diagnose.base import Case
from hotloop.diagnose.rules.fp32_matmul import fp32_matmul
from hotloop.measurement import Precision
from hotloop.roof import Roof
from tests.diagnose.gpu_making import (
    ADD,
    PRODUCT,
    PRODUCT_IN_FP32,
    PRODUCT_IN_TF32,
    Scene,
    blind,
    case,
    look_at,
    operators,
    script,
)


def products(scene: Scene, name: str = PRODUCT_IN_FP32) -> None:
    """10 ms: 8 of them products."""
    scene.train(lambda: scene.run(name, 8), lambda: scene.run(ADD, 2)).step()


def on_cpu(made: Case, **rates: float) -> Case:
    software = replace(made.measurement.software, device="cpu")
    measured = replace(made.measurement, software=software)
    return replace(blind(made), measurement=measured, roof=Roof(cpu_matrix_flops=rates))


def test_fp32_where_tensor_cores_would_serve() -> None:
    found = fp32_matmul(case(products))
    assert found is not None
    assert found.levers == ("tf32", "bf16")
    assert found.cause == "FP32"
    after = 8 * 51 / 389 / 0.7
    assert found.share == pytest.approx((8 - after) / 10, abs=0.01)


def test_by_what_is_really_computed() -> None:
    flops = 51e12 * 8e-3 * 0.5  # these products reach half of the peak
    found = fp32_matmul(look_at(case(products), operators=operators(flops={"float32": flops})))
    assert found is not None
    after = flops / 389e12 / 0.7 * 1e3
    assert found.share == pytest.approx((8 - after) / 10, abs=0.01)


def test_but_not_by_a_count_that_leaves_products_out() -> None:
    counted = operators(flops={"float32": 1e6}, without_formula={"linalg_inv": 1})
    found = fp32_matmul(look_at(case(products), operators=counted))
    assert found is not None
    assert found.share == pytest.approx((8 - 8 * 51 / 389 / 0.7) / 10, abs=0.01)


def test_tf32_where_bfloat16_would_be_faster() -> None:
    found = fp32_matmul(case(lambda scene: products(scene, PRODUCT_IN_TF32)))
    assert found is not None
    assert found.levers == ("bf16",)
    assert found.cause == "TF32"
    assert found.share == pytest.approx((8 - 8 * 389 / 742 / 0.7) / 10, abs=0.01)


def test_attention_on_32_bit_numbers_counts_where_16_bits_are_the_remedy() -> None:
    wide = "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>)"
    narrow = (
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, cutlass::bfloat16_t>>"
    )

    def share(product: str, attention: str) -> float:
        def job(scene: Scene) -> None:
            scene.train(lambda: scene.run(product, 4), lambda: scene.run(attention, 6)).step()

        found = fp32_matmul(case(job))
        assert found is not None
        assert ("attention" in found.title) == (found.share > 0.4)
        return found.share

    after = 4 * 389 / 742 / 0.7
    won = share(PRODUCT_IN_TF32, wide)
    assert won == pytest.approx((4 - after + 6 * 0.8) / 10, abs=0.01)
    assert share(PRODUCT_IN_TF32, narrow) == pytest.approx((4 - after) / 10, abs=0.01)
    assert share(PRODUCT_IN_FP32, wide) < 0.4  # TF32 comes first, and leaves attention as it is


def test_a_gpu_that_has_neither_tf32_nor_bfloat16() -> None:
    old = replace(case(products), roof=Roof(matrix_flops={"float32": 8e12, "float16": 65e12}))
    found = fp32_matmul(old)
    assert found is not None
    assert found.levers == ("fp16",)
    assert "GradScaler" in found.remedy


def test_bfloat16_is_as_it_should_be() -> None:
    assert fp32_matmul(case(lambda scene: products(scene, PRODUCT))) is None


def test_a_gpu_that_waits_for_the_cpu_would_wait_longer() -> None:
    def starved(scene: Scene) -> None:
        scene.train(
            lambda: [scene.run(PRODUCT_IN_FP32, 0.02, queueing=0.05) for _ in range(50)]
        ).step()

    assert fp32_matmul(case(starved)) is None


class TestWithoutTheGpusRecord:
    def test_by_the_number_of_operations(self) -> None:
        made = blind(case(products))
        made = look_at(
            made, operators=operators(flops={"float32": 51e12 * 4e-3}, by_name={"mm": 3})
        )
        made = replace(made, figures=replace(made.figures, phases=_phases(made)))
        found = fp32_matmul(made)
        assert found is not None
        assert "by their FLOPs, at least" in found.evidence[0]
        assert 0.3 < found.share < 0.4
        tf32 = fp32_matmul(script(made, precision=Precision(tf32_matmul=True)))
        assert tf32 is None or tf32.cause == "TF32"

    def test_nothing_without_a_count(self) -> None:
        assert fp32_matmul(blind(case(products))) is None


def _phases(made: Case):  # type: ignore[no-untyped-def]
    """Where the queue is full, the passes take all the time."""
    from hotloop.figures import PhaseShare

    return (PhaseShare("forward", made.figures.step.mean, 1.0),)


class TestOnACpu:
    def counted(self) -> Case:
        made = case(lambda scene: scene.train(lambda: scene.cpu(8)).step(lambda: scene.cpu(2)))
        return look_at(made, operators=operators(flops={"float32": 1e12 * 6e-3}))

    def test_only_where_this_one_is_faster_in_bfloat16(self) -> None:
        assert fp32_matmul(on_cpu(self.counted(), float32=1e12)) is None
        assert fp32_matmul(on_cpu(self.counted(), float32=1e12, bfloat16=0.5e12)) is None
        found = fp32_matmul(on_cpu(self.counted(), float32=1e12, bfloat16=4e12))
        assert found is not None
        assert found.levers == ("bf16",)
        assert found.share == pytest.approx((6 - 6 / 4 / 0.7) / 10, abs=0.01)


def test_nothing_without_a_roof() -> None:
    assert fp32_matmul(replace(case(products), roof=None)) is None
