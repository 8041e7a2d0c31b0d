from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import Any

import pytest

from hotloop.diagnose.base import Case, Effort
from hotloop.diagnose.rules.optimizer_bound import optimizer_bound
from hotloop.inspection import Inspection
from hotloop.measurement import GpuTimes, Kind, Software
from tests.builders import Log, optimizer
from tests.diagnose.making import case, hand_drawn, operator_line, operators, samples, users

STEP = users(44, source="optimizer.step()")


def job(updates: int = 10_000, **changes: Any) -> Case:
    """Steps of 20 ms, 10 of which go to a thousand small tensors."""

    def step(log: Log) -> None:
        log.forward(4, 8).backward(6).optimizer(10)

    counted = operators(operator_line(STEP, updates, phase="optimizer"))
    seen = samples((15, 10, [STEP]))
    seen_optimizer = optimizer(**{"parameters": 32_000, "foreach": False} | changes)
    inspection = Inspection(steps=5, samples=seen, operators=counted)
    return case(hand_drawn(step), inspection, loaders=[], optimizers=[seen_optimizer])


def test_a_thousand_tensors_one_after_the_other() -> None:
    finding = optimizer_bound(job())
    assert finding is not None and finding.places == (STEP,)
    assert finding.share == pytest.approx(0.5 * (1 - 2.1 / 10), rel=0.02)
    assert "fused=True" in finding.remedy
    assert finding.levers == ()  # the script has chosen its implementation


def test_a_line_that_is_seen_where_phases_meet_is_not_named() -> None:
    one = job()
    assert one.inspection is not None
    seen = samples((15, 10, [STEP]), (11, 1, [users(9, source="y = model(x)")]))
    finding = optimizer_bound(replace(one, inspection=replace(one.inspection, samples=seen)))
    assert finding is not None and finding.places == (STEP,)


def test_the_lever_changes_what_nobody_has_chosen() -> None:
    finding = optimizer_bound(job(foreach=None))
    assert finding is not None and finding.levers == ("fused_optimizer",)


def test_large_tensors_are_read_and_written_less() -> None:
    finding = optimizer_bound(job(updates=130, parameters=50_000_000))
    assert finding is not None
    assert finding.share == pytest.approx(0.5 * (1 - 28 / 80), rel=0.02)


def test_plain_sgd_moves_nothing_twice() -> None:
    finding = optimizer_bound(job(updates=12, name="SGD", parameters=10_000_000))
    assert finding is None or finding.share < 0.13


def test_without_a_roof_it_is_assumed() -> None:
    finding = optimizer_bound(replace(job(), roof=None))
    assert finding is not None and finding.share == pytest.approx(0.25)
    assert any(line.startswith("assumed") for line in finding.evidence)


def test_one_that_has_no_fused_kernel() -> None:
    finding = optimizer_bound(job(name="RMSprop"))
    assert finding is not None and "foreach=True" in finding.remedy and not finding.levers


def test_one_that_does_what_it_can_is_a_remark() -> None:
    finding = optimizer_bound(job(name="RMSprop", foreach=True))
    assert finding is not None and not finding.is_limit
    assert finding.share == 0.0  # it explains nothing else away
    assert "already updates many tensors at once" in finding.remedy
    assert not any("fused one" in line for line in finding.evidence)


def test_one_that_is_not_torchs_is_not_told_of_arguments_it_may_not_have() -> None:
    finding = optimizer_bound(job(name="Lion"))
    assert finding is not None and "foreach=True" not in finding.remedy
    assert finding.effort is Effort.LINES


@pytest.mark.parametrize("name", ["LBFGS", "SparseAdam"])
def test_one_that_does_not_go_from_tensor_to_tensor(name: str) -> None:
    assert optimizer_bound(job(name=name)) is None


def test_a_fused_one_is_as_fast_as_can_be() -> None:
    assert optimizer_bound(job(fused=True)) is None


def test_a_short_update_is_nobodys_limit() -> None:
    log = hand_drawn(lambda log: log.forward(10, 8).backward(10).optimizer(0.5))
    assert optimizer_bound(case(log, loaders=[])) is None


@pytest.mark.parametrize("ms", [0.2, 10.0])
def test_on_a_gpu_its_own_clock_counts(ms: float) -> None:
    made = job()
    events = made.measurement.events
    kinds = (Kind.FORWARD_BEGIN, Kind.OPTIMIZER_BEGIN, Kind.OPTIMIZER_END)
    marks = [index for index, kind in enumerate(events.kind) if kind in kinds]
    gpu = GpuTimes(marks, list(accumulate([0.0, 19.8, ms] * (len(marks) // 3))))
    software = Software(device="NVIDIA H200")
    finding = optimizer_bound(
        replace(made, measurement=replace(made.measurement, software=software, gpu=gpu))
    )
    assert (finding is not None) is (ms == 10.0)


def test_what_a_script_does_with_gradients_before_is_no_update() -> None:
    """It writes down the norm of each, say."""
    norms = users(40, "log_norms", "norms.append(p.grad.norm().item())")
    log = hand_drawn(lambda log: log.forward(4, 8).backward(6).wait(10).optimizer(10))
    seen = samples((15, 10, [norms]), (25, 10, [STEP]))
    made = job()
    assert made.inspection is not None
    other = case(log, replace(made.inspection, samples=seen), loaders=[], optimizers=[optimizer()])
    finding = optimizer_bound(other)
    assert finding is not None and finding.title == "The optimizer takes 33% of a step"
    assert finding.places == (STEP,)


def test_many_small_tensors_of_plain_sgd_are_worth_it() -> None:
    finding = optimizer_bound(job(updates=2_000, name="SGD"))
    assert finding is not None and finding.share == pytest.approx(0.5 * (1 - 1.0 / 2), rel=0.05)


def test_beside_another_only_its_own_time_is_won() -> None:
    """Sparse embeddings have an optimizer of their own, which no kernel makes faster."""

    def step(log: Log) -> None:
        log.forward(4, 8).backward(6).optimizer(7, key=0).optimizer(3, key=1)

    two = [optimizer(name="SparseAdam"), optimizer(name="Adam", parameters=32_000, tensors=100)]
    one = job()
    made = case(hand_drawn(step), one.inspection, loaders=[], optimizers=two)
    finding = optimizer_bound(made)
    assert finding is not None and finding.title == "Adam takes 15% of a step"
    assert finding.share == pytest.approx(0.15 * (1 - 2.3 / 9), rel=0.02)
    assert "Adam takes 3.00 ms a step, unfused" in finding.evidence
    assert not any("operators a step" in line for line in finding.evidence)


def test_several_of_a_name_are_told_together() -> None:
    def step(log: Log) -> None:
        log.forward(4, 8).backward(6).optimizer(7, key=0).optimizer(3, key=1)

    two = [optimizer(name="Adam", parameters=16_000)] * 2
    made = case(hand_drawn(step), job().inspection, loaders=[], optimizers=two)
    finding = optimizer_bound(made)
    assert finding is not None and finding.title == "The optimizer takes 50% of a step"
    assert "Adam takes 10.0 ms a step, unfused" in finding.evidence
