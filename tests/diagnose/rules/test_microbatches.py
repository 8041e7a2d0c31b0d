from __future__ import annotations

import pytest

from hotloop.diagnose.base import Case
from hotloop.diagnose.rules.microbatches import microbatches
from hotloop.inspection import Inspection
from hotloop.measurement import Kind
from tests.builders import Log
from tests.diagnose import gpu_making
from tests.diagnose.making import case, hand_drawn, operator_line, operators, samples, users

BACKWARD = users(34, source="loss.backward()")


def accumulated(parts: int = 4, ms: float = 1.0) -> Log:
    """One batch of 8 in parts of two passes, each this long; then 1 ms of updating."""

    def step(log: Log) -> None:
        for _ in range(parts):
            log.forward(ms, 8 // parts).backward(ms)
        log.optimizer(1)

    return hand_drawn(step)


def job(log: Log, flops: float = 4e6) -> Case:
    """Arithmetic of 0.1 ms a step, at two fifths of 100 GFLOP/s."""
    counted = operators(operator_line(users(5), 10), flops={"float32": flops})
    seen = samples((1.5, 5, [BACKWARD]))
    return case(log, Inspection(steps=5, samples=seen, operators=counted), loaders=[])


def test_the_fixed_cost_of_a_pass_is_paid_once_instead_of_four_times() -> None:
    finding = microbatches(job(accumulated()))
    assert finding is not None and finding.places == (BACKWARD,)
    assert finding.title.startswith("A step takes 4 passes of 2 samples")
    assert finding.share == pytest.approx((8 - 0.1) * 3 / 4 / 9, rel=0.02)


def test_passes_that_compute_all_the_time_gain_nothing() -> None:
    assert microbatches(job(accumulated(), flops=8e-3 * 40e9)) is None


def test_one_pass_a_step_is_usual() -> None:
    assert microbatches(job(accumulated(parts=1))) is None


def test_without_a_roof_nothing_is_known() -> None:
    assert microbatches(case(accumulated(), Inspection(), loaders=[])) is None


def test_two_models_are_no_parts_of_a_batch() -> None:
    log = hand_drawn(
        lambda log: log.forward(1).backward(1).forward(1, key=1).backward(1).optimizer(1)
    )
    assert microbatches(job(log)) is None


def test_two_optimizers_are_none_either() -> None:
    log = hand_drawn(
        lambda log: (
            log.forward(1).backward(1).optimizer(1, key=1).forward(1).backward(1).optimizer(1)
        )
    )
    assert microbatches(job(log)) is None


def test_an_optimizer_that_asks_again_works_on_the_same_batch() -> None:
    def step(log: Log) -> None:
        with log.inside(Kind.OPTIMIZER_BEGIN):
            log.forward(1, 8).backward(1).forward(1, 8).backward(1)

    assert microbatches(job(hand_drawn(step))) is None


def test_gradients_of_gradients() -> None:
    log = hand_drawn(
        lambda log: log.forward(1).backward(1, key=1).forward(1).backward(1).optimizer(1)
    )
    assert microbatches(job(log)) is None


def test_on_a_gpu_the_cpu_queues_less() -> None:
    """Parts of which each queues fifty kernels of 2 µs, one every 10 µs."""

    def body(scene: gpu_making.Scene) -> object:
        def queue() -> object:
            return [scene.run(gpu_making.ADD, 0.002, 0.01) for _ in range(25)]

        for _ in range(8):
            scene.train(queue, queue)
        return scene.step(lambda: scene.cpu(0.001))

    finding = microbatches(gpu_making.case(body, loader=None))
    assert finding is not None
    assert finding.share == pytest.approx(7 / 8, abs=0.03)
