from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.diagnose.base import Case
from hotloop.diagnose.rules.empty_cache import empty_cache
from hotloop.inspection import Allocator, Call
from tests.diagnose import gpu_making

LINE = gpu_making.line(61)


def job(idle: float, calls: int = 24, segments: int = 0) -> Case:
    """Steps of which the GPU works for 8 ms, and then idles for so many."""

    def body(scene: gpu_making.Scene) -> object:
        scene.log.data(0.01, 8)
        scene.train(lambda: scene.run(gpu_making.PRODUCT, 8.0).wait().cpu(idle))
        return scene.step(lambda: scene.cpu(0.01))

    made = gpu_making.case(body)
    assert made.inspection is not None
    seen = [Call("empty_cache", [LINE], 0, 0.004) for _ in range(calls)]
    allocator = Allocator(driver_calls=segments)
    return replace(made, inspection=replace(made.inspection, calls=seen, allocator=allocator))


def test_it_costs_what_the_gpu_idles_meanwhile() -> None:
    finding = empty_cache(job(idle=4))
    assert finding is not None and finding.places == (LINE,)
    assert finding.share == pytest.approx(1 / 3, abs=0.02)


def test_memory_is_asked_of_the_driver_again() -> None:
    more = empty_cache(job(idle=8, segments=24 * 10))
    assert more is not None and more.share == pytest.approx((4 + 2) / 16, abs=0.02)


def test_a_call_that_only_waits_costs_nothing() -> None:
    assert empty_cache(job(idle=0.1)) is None


def test_now_and_then_is_no_matter() -> None:
    assert empty_cache(job(idle=4, calls=1)) is None
    assert empty_cache(job(idle=4, calls=0)) is None
