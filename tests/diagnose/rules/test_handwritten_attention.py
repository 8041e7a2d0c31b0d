from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.diagnose.base import Case
from hotloop.diagnose.rules.handwritten_attention import (
    LEFT_ON_CPU,
    PASSES,
    handwritten_attention,
)
from hotloop.inspection import Attention, Frame, OperatorLine
from tests.diagnose.gpu_making import PRODUCT, Scene, blind, case, look_at, operators

SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>"
LOSS = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>"
FLASH = "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>>"


def at(line: int, function: str = "attend") -> Frame:
    return Frame("/job/model.py", line, function, is_users=True)


def written(line: int, seconds: float, function: str = "attend") -> OperatorLine:
    return OperatorLine(at(line, function), 4, seconds, 4, 1000, backward_seconds=seconds)


COUNTED = operators(
    attention=[Attention(at(29), 2, 512, 512, 0.4)],
    lines=[
        written(27, 0.1),
        written(28, 0.1),
        written(29, 0.2),
        written(60, 0.5, "mlp"),
        written(26, 0.1, "forward"),
    ],
)


def on_cpu() -> Case:
    def job(scene: Scene) -> None:
        scene.data(1).train(lambda: scene.cpu(4), lambda: scene.cpu(4)).step(lambda: scene.cpu(1))

    made = look_at(blind(case(job)), operators=COUNTED)
    software = replace(made.measurement.software, device="cpu")
    return replace(made, measurement=replace(made.measurement, software=software))


class TestOnACpu:
    def test_by_the_lines_that_it_is_written_on(self) -> None:
        found = handwritten_attention(on_cpu())
        assert found is not None
        assert found.share == pytest.approx(0.8 * 0.4 * (1 - LEFT_ON_CPU), abs=0.005)
        assert found.places == (at(29),)
        assert "model.py:29: 2 times a step, 512 queries by 512 keys" in found.evidence[0]
        assert "scaled_dot_product_attention" in found.remedy
        assert found.levers == ("fused_attention",)

    def test_torchs_own_was_not_written_by_hand(self) -> None:
        asked = [replace(one, tells_weights=True) for one in COUNTED.attention]
        found = handwritten_attention(
            look_at(on_cpu(), operators=replace(COUNTED, attention=asked))
        )
        assert found is not None
        assert "by hand" not in found.title
        assert "need_weights=False" in found.remedy

    @pytest.mark.parametrize(
        ("forgotten", "end"), [(0, "each kept in"), (1, "1 of them kept in"), (2, "512 keys")]
    )
    def test_a_frozen_model_keeps_nothing(self, forgotten: int, end: str) -> None:
        made = [replace(one, forgotten=forgotten) for one in COUNTED.attention]
        found = handwritten_attention(look_at(on_cpu(), operators=replace(COUNTED, attention=made)))
        assert found is not None
        assert found.evidence[0].removesuffix(" memory until the backward pass").endswith(end)

    def test_a_line_that_does_much_else_counts_in_part(self) -> None:
        """Of a library's attention it is the script's line that calls the whole model."""
        made = look_at(on_cpu(), operators=replace(COUNTED, lines=[written(29, 1.6)]))
        found = handwritten_attention(made)
        assert found is not None
        assert found.share == pytest.approx(0.8 * 0.25 * (1 - LEFT_ON_CPU), abs=0.005)

    def test_by_its_operators_where_no_lines_were_kept(self) -> None:
        made = look_at(on_cpu(), operators=replace(COUNTED, lines=[], seconds=3.0))
        found = handwritten_attention(made)
        assert found is not None
        assert found.share == pytest.approx(0.8 * 0.4 * (1 - LEFT_ON_CPU), abs=0.005)

    def test_little_of_it_does_not_matter(self) -> None:
        few = [written(29, 0.01), written(60, 1.0, "mlp")]
        assert (
            handwritten_attention(look_at(on_cpu(), operators=replace(COUNTED, lines=few))) is None
        )

    def test_none_at_all(self) -> None:
        assert (
            handwritten_attention(look_at(on_cpu(), operators=replace(COUNTED, attention=[])))
            is None
        )
        assert handwritten_attention(look_at(on_cpu(), operators=None)) is None


class TestOnAGpu:
    def job(self, *names: str) -> Case:
        def step(scene: Scene) -> None:
            scene.train(
                lambda: [scene.run(name, 1) for name in names], lambda: scene.run(PRODUCT, 18)
            )
            scene.step()

        return look_at(case(step), operators=COUNTED)

    def test_by_the_softmax_as_the_measure_of_a_pass(self) -> None:
        found = handwritten_attention(self.job(SOFTMAX, PRODUCT))
        assert found is not None
        assert found.share == pytest.approx(PASSES / 20, abs=0.01)

    def test_the_softmax_of_a_loss_is_another(self) -> None:
        assert handwritten_attention(self.job(LOSS, PRODUCT)) is None

    def test_a_compiler_may_have_fused_it(self) -> None:
        assert handwritten_attention(self.job(SOFTMAX, FLASH)) is None

    def test_the_cpus_clock_says_nothing_of_it(self) -> None:
        assert handwritten_attention(blind(self.job(SOFTMAX, PRODUCT))) is None
