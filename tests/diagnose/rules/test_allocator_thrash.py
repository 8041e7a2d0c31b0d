from __future__ import annotations

import pytest

from hotloop.diagnose.base import Case
from hotloop.diagnose.rules.allocator_thrash import allocator_thrash
from hotloop.inspection import Allocator
from tests.diagnose.gpu_making import PRODUCT, Scene, blind, case, gain, look_at


def asking(scene: Scene, ms: float = 3.0) -> None:
    """The driver is asked before each of two kernels, while the GPU is done."""

    def one() -> None:
        scene._catch_up()
        scene.cpu(ms).run(PRODUCT, 4)

    scene.train(one, one).step()


def thrashing(retries: int = 24, calls: int = 48, **how: float) -> Case:
    made = case(lambda scene: asking(scene, **how))
    return look_at(made, allocator=Allocator(retries, calls, 5 * 2**30, 3 * 2**30))


def test_what_idles_and_is_not_queueing() -> None:
    found = allocator_thrash(thrashing())
    assert found is not None and found.is_limit
    real = gain(asking, lambda scene: asking(scene, ms=0.0))
    assert found.share == pytest.approx(real, rel=0.05)
    assert "3 times a step" in found.title
    assert "expandable_segments" in found.remedy


def test_a_setting_that_may_be_to_blame_is_told() -> None:
    made = Allocator(24, 48, 5 * 2**30, 3 * 2**30, settings="max_split_size_mb:64")
    found = allocator_thrash(look_at(case(asking), allocator=made))
    assert found is not None
    assert "it was told max_split_size_mb:64" in found.evidence


def test_calls_cannot_take_any_time() -> None:
    """Something else keeps the GPU waiting there."""
    found = allocator_thrash(thrashing(retries=0, calls=24, ms=20.0))
    assert found is not None
    assert found.share == pytest.approx(5 / 48, abs=0.01)


def test_retries_that_cost_nothing_are_a_remark() -> None:
    found = allocator_thrash(thrashing(ms=0.0))
    assert found is not None and not found.is_limit
    assert allocator_thrash(thrashing(retries=0, ms=0.0)) is None


def test_a_rare_size_is_no_matter() -> None:
    assert allocator_thrash(thrashing(retries=0, calls=5)) is None


def test_without_the_gpus_record_it_is_a_remark() -> None:
    found = allocator_thrash(blind(thrashing()))
    assert found is not None
    assert not found.is_limit and found.share == 0


def test_nothing_without_an_allocator() -> None:
    assert allocator_thrash(case(asking)) is None
