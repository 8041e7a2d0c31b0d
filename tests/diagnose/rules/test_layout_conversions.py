from __future__ import annotations

import pytest

from hotloop.diagnose.rules.layout_conversions import layout_conversions
from tests.builders import model
from tests.diagnose.gpu_making import ADD, Scene, blind, case, gain, script

CONVOLUTION = "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16"
INTO = "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(float const*)"
BACK = "void cudnn::ops::nhwcToNchwKernel<float, float, float, true, false>(float const*)"
STRIDED = (
    "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<"
    "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>>"
)


def job(scene: Scene, around: tuple[str, ...] = (INTO, BACK)) -> None:
    def layers() -> None:
        for _ in range(4):
            scene.run(CONVOLUTION, 1)
            for name in around:
                scene.run(name, 0.3)

    scene.train(layers, layers).step()


@pytest.mark.parametrize("around", [(INTO, BACK), (STRIDED,)])
def test_turning_goes_away(around: tuple[str, ...]) -> None:
    found = layout_conversions(case(lambda scene: job(scene, around)))
    real = gain(lambda scene: job(scene, around), lambda scene: job(scene, ()))
    assert found is not None
    assert found.share == pytest.approx(real, rel=0.05)
    assert found.levers == ("channels_last",)
    assert "8 conversions" in found.evidence[0] or "16 conversions" in found.evidence[0]


def test_a_model_that_has_its_channels_last_meets_something_that_has_not() -> None:
    found = layout_conversions(script(case(job), models=[model(channels_last=True)]))
    assert found is not None
    assert found.levers == ()
    assert ".contiguous()" in found.remedy


def test_copies_without_convolutions_are_something_else() -> None:
    def copies(scene: Scene) -> None:
        scene.train(lambda: [scene.run(STRIDED, 1), scene.run(ADD, 1)]).step()

    assert layout_conversions(case(copies)) is None


def test_nothing_to_turn() -> None:
    assert layout_conversions(case(lambda scene: job(scene, ()))) is None


def test_nothing_is_said_without_the_gpus_record() -> None:
    assert layout_conversions(blind(case(job))) is None
