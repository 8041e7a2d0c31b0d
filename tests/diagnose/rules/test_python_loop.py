from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.diagnose.base import Case
from hotloop.diagnose.rules.python_loop import python_loop
from hotloop.inspection import Frame, Inspection, Operators
from hotloop.roof import Roof
from tests.builders import Log
from tests.diagnose import gpu_making
from tests.diagnose.making import MAIN, case, operator_line, operators, samples, users

LOOP, LAYER = users(30, "dice"), users(60, "Net.forward")


def job(counted: Operators, at: Frame = LOOP) -> Case:
    """Steps of 20 ms: 4 of data, 5 forward, 8 backward, 3 for the optimizer."""
    seen = samples((25, 4, [MAIN, at]), (26, 1, [MAIN, LAYER]))
    return case(inspection=Inspection(steps=5, samples=seen, operators=counted))


def test_a_line_that_queues_thousands_of_tiny_operators() -> None:
    finding = python_loop(job(operators(operator_line(LOOP, 3000), operator_line(LAYER, 60))))
    assert finding is not None and finding.places == (LOOP,)
    # Four fifths of the forward pass, and of the backward pass what undoes it.
    assert finding.share == pytest.approx(0.8 * 0.25 + 3000 / 3060 * 0.4, rel=0.02)


def test_operators_that_are_quicker_than_their_numbers_were_reckoned_to_be() -> None:
    """About four microseconds each, forward or back, where 16 thousand numbers were to take 16."""
    quick = operator_line(LOOP, 3000, median_elements=16_000)
    finding = python_loop(job(operators(quick, operator_line(LAYER, 60))))
    assert finding is not None and 0.2 < finding.share < 0.35  # half of it


def test_the_lines_of_one_loop_belong_together() -> None:
    inner = users(31, "dice")
    counted = operators(operator_line(inner, 900), operator_line(LOOP, 600))
    finding = python_loop(job(counted))
    assert finding is not None and finding.places == (inner, LOOP)
    assert "1,500 operators a step" in finding.evidence[0]


def test_the_lines_of_a_recurrent_cell_are_a_loop_together() -> None:
    """Each queues few, in several modules, but all of them a hundred times."""
    cell = [users(40 + n, "Cell.forward") for n in range(6)]
    counted = operators(
        *(operator_line(line, 200, repeats=100, modules=3) for line in cell),
        operator_line(LAYER, 240, repeats=1),
    )
    finding = python_loop(job(counted, at=cell[0]))
    assert finding is not None and set(finding.places) <= set(cell)
    assert "1,200 operators a step" in finding.evidence[0]
    twelve = [operator_line(line, 200, repeats=12) for line in cell]
    assert python_loop(job(operators(*twelve), at=cell[0])) is None
    apart = [replace(one, place=users(1, f"f{n}")) for n, one in enumerate(twelve)]
    alone = [replace(one, repeats=100) for one in apart]
    assert python_loop(job(operators(*alone), at=cell[0])) is None


def test_gradients_may_be_gone_over_in_a_loop() -> None:
    """Between the backward pass and the optimizer, which counts as the optimizer's phase."""
    clip = users(70, "clip", "p.grad = p.grad * factor")
    log = Log()
    for _ in range(20):
        log.data(4, 8).forward(5, 8).backward(8).wait(6).optimizer(3)
    seen = samples((26 * 3 + 20, 6, [MAIN, clip]), (26 * 3 + 6, 5, [MAIN, LAYER]))
    line = operator_line(clip, 3000, backward_operators=0, backward_seconds=0.0, differentiated=0)
    counted = operators(line, operator_line(LAYER, 60))
    finding = python_loop(
        case(log, Inspection(steps=5, samples=seen, operators=counted), looked=log)
    )
    assert finding is not None and finding.places == (clip,)
    assert finding.share > 0.2


@pytest.mark.parametrize(
    "line",
    [
        operator_line(LOOP, 240),
        operator_line(LOOP, 3000, elements=10**6),
        operator_line(LOOP, 3000, phase="optimizer"),
        operator_line(LOOP, 3000, recurrent=2800),
    ],
    ids=["the layers of a model", "large tensors", "the optimizer's own", "a recurrent layer"],
)
def test_what_is_no_loop(line: object) -> None:
    assert python_loop(job(operators(line))) is None  # type: ignore[arg-type]


def test_operators_are_counted_by_the_step() -> None:
    assert python_loop(job(operators(operator_line(LOOP, 600), steps=2))) is None


def test_many_passes_a_step_are_no_loop() -> None:
    log = Log()
    for _ in range(20):
        for _ in range(8):
            log.forward(2, 1).backward(2)
        log.optimizer(1)
    counted = operators(operator_line(LOOP, 960))
    seen = samples((1, 5, [MAIN, LOOP]))
    assert python_loop(case(log, Inspection(samples=seen, operators=counted), loaders=[])) is None


def test_a_loop_that_takes_no_time() -> None:
    counted = operators(operator_line(LOOP, 3000, differentiated=0, backward_seconds=0.0))
    quick = samples((25, 5, [MAIN, LAYER]))
    assert python_loop(case(inspection=Inspection(samples=quick, operators=counted))) is None


def test_without_samples_the_counted_seconds_tell() -> None:
    counted = operators(operator_line(LOOP, 3000), operator_line(LAYER, 1000, elements=10**6))
    finding = python_loop(case(inspection=Inspection(steps=5, operators=counted)))
    assert finding is not None
    assert finding.share == pytest.approx(0.75 * (0.25 + 0.4), rel=0.02)


def test_nobody_counted() -> None:
    assert python_loop(case()) is None
    assert python_loop(case(inspection=Inspection())) is None


def test_what_a_gpu_has_to_do_besides_cannot_be_won() -> None:
    """Half of the time the GPU waits for the loop, the other half it works off a product."""

    def body(scene: gpu_making.Scene) -> object:
        scene.log.data(0.01, 8)
        scene.train(lambda: [scene.run(gpu_making.ADD, 0.002, 0.01) for _ in range(600)])
        scene.run(gpu_making.PRODUCT, 6.0)
        return scene.step().wait()

    made = gpu_making.case(body)
    assert made.inspection is not None
    counted = operators(operator_line(LOOP, 600, backward_operators=0))
    inspection = replace(made.inspection, operators=counted)
    finding = python_loop(replace(made, inspection=inspection))
    assert finding is not None and finding.share == pytest.approx(0.5, abs=0.03)


def test_beside_large_operators_the_loop_takes_what_those_do_not() -> None:
    large = replace(operator_line(LAYER, 10, elements=10**6), seconds=0.0005)
    counted = operators(replace(operator_line(LOOP, 3000), seconds=0.002), large)
    seen = samples((25, 2, [MAIN, LOOP]), (27, 3, [MAIN, LAYER]))
    look = Inspection(steps=5, samples=seen, operators=counted)
    backward = 3000 / 3010 * 0.4
    by_sight = python_loop(case(inspection=look, roof=None))
    assert by_sight is not None and by_sight.share == pytest.approx(0.4 * 0.25 + backward, rel=0.02)
    # Of 5 ms forward the large ones took half a millisecond, and 5 µs each to be called.
    known = python_loop(case(inspection=look, roof=Roof(launch_seconds=5e-6)))
    beside = (0.0005 + 10 * 5e-6) / 0.02
    assert known is not None and known.share == pytest.approx(0.25 - beside + backward, rel=0.02)
