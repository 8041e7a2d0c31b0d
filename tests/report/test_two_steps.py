from __future__ import annotations

import pytest

from hotloop.inspection import Inspection, Kernels
from hotloop.levers.base import Receipt
from hotloop.measurement import Kind, Measurement
from hotloop.report import breakdown_rows, kernel_steps, two_steps
from hotloop.report.sides import Side
from hotloop.report.two_steps import BY_EVENTS, Bar, Lane, TwoSteps
from tests.builders import Log, measurement, on_gpu, training, trial
from tests.report.studies import searched
from tests.test_recordings import RESNET, recorded


def drawn(made: Measurement) -> TwoSteps:
    (found,) = two_steps.rows([Side("as it is", trial(measurement=made))])
    return found


def lanes(found: TwoSteps) -> dict[str, Lane]:
    return {lane.name: lane for lane in found.lanes}


def test_two_ordinary_steps() -> None:
    found = drawn(measurement())
    assert found.seconds == pytest.approx(0.040)
    assert found.boundary == pytest.approx(0.020)
    (cpu,) = found.lanes
    assert [bar.phase for bar in cpu.bars[:4]] == ["data", "forward", "backward", "optimizer"]
    assert cpu.bars[0].begin == 0 and cpu.bars[-1].end == pytest.approx(found.seconds)
    assert cpu.busy() == pytest.approx(found.seconds)


def test_a_phase_in_several_calls_is_one_bar() -> None:
    log = Log()
    for _ in range(20):
        log.data(1, 8).forward(2, 8).forward(2, 8).backward(3).optimizer(1)
    (cpu,) = drawn(measurement(log.events)).lanes
    assert [bar.phase for bar in cpu.bars].count("forward") == 2  # one a step


def test_steps_with_an_evaluation_in_between_are_not_chosen() -> None:
    log = Log()
    for number in range(30):
        log.step()
        if number % 10 == 9:
            log.no_grad(500, 8)
    found = drawn(measurement(log.events))
    assert found.seconds == pytest.approx(0.040)
    assert "evaluation" not in {bar.phase for lane in found.lanes for bar in lane.bars}


def test_copies_have_a_row_of_their_own() -> None:
    log = Log()
    for _ in range(20):
        log.data(1, 8).copy(2).forward(2, 8).backward(3).optimizer(1)
    found = lanes(drawn(measurement(log.events)))
    assert len(found["copies"].bars) == 2
    assert found["copies"].busy() == pytest.approx(0.004)


class TestGpu:
    def test_its_row_is_laid_against_the_clock_of_the_cpu(self) -> None:
        events = training(20).events
        made = measurement(events, gpu=on_gpu(events, *Kind))
        found = drawn(made)
        gpu = lanes(found)["GPU"]
        assert found.note == BY_EVENTS
        # Its clock is the host's here, so the same calls lie at the same places.
        backward = [bar for bar in gpu.bars if bar.phase == "backward"]
        host = [bar for bar in lanes(found)["CPU"].bars if bar.phase == "backward"]
        assert [bar.begin for bar in backward] == pytest.approx([bar.begin for bar in host])

    def test_nothing_runs_before_it_was_queued(self) -> None:
        found = drawn(recorded(RESNET).trials[0].measurement or Measurement())
        gpu = lanes(found)["GPU"]
        assert gpu.busy() > 0.9 * found.seconds
        assert min(bar.begin for bar in gpu.bars) >= 0
        assert max(bar.end for bar in gpu.bars) <= found.seconds

    def test_where_it_was_not_timed_there_is_no_row(self) -> None:
        assert "GPU" not in lanes(drawn(measurement()))


def test_another_batch_size_is_said() -> None:
    receipt = Receipt("batch_size", True, evidence={"samples_before": 8, "samples": 16})
    larger = trial(receipts=(receipt,))
    assert larger.own_batches == 2
    (found,) = two_steps.rows([Side("under the plan", larger)])
    assert found.note == "Each of these steps takes 2 of the job's own batches."
    (step,) = breakdown_rows.rows([Side("under the plan", larger)])
    assert step.seconds == pytest.approx(0.010)  # for as many samples as the job's own step has


def test_a_trial_of_few_steps_has_none_to_show() -> None:
    made = measurement(Log().step().step().events)
    assert two_steps.rows([Side("as it is", trial(measurement=made))]) == ()
    assert two_steps.rows([Side("as it is", trial(measurement=None))]) == ()


def test_overlapping_bars_are_counted_once() -> None:
    lane = Lane("GPU", (Bar(0, 2, "kernel", ""), Bar(1, 3, "kernel", ""), Bar(5, 6, "kernel", "")))
    assert lane.busy() == pytest.approx(4)


class TestKernels:
    def looked_into(self, kernels: Kernels) -> TwoSteps | None:
        looked = trial(purpose="look", inspection=Inspection(steps=4, kernels=kernels))
        return kernel_steps.rows(searched(None, looked))

    def test_gaps_stay_and_what_follows_closely_is_merged(self) -> None:
        begin = 200_000_000  # the end of the tenth step of 20 ms
        starts = [begin, begin + 1_000_100, begin + 20_000_000, begin + 25_000_000]
        found = self.looked_into(
            Kernels(
                steps=4,
                begin_ns=begin,
                end_ns=begin + 80_000_000,
                names=["sgemm", "Memcpy HtoD"],
                name=[0, 0, 0, 1],
                start_ns=starts,
                duration_ns=[1_000_000, 1_000_000, 2_000_000, 3_000_000],
            )
        )
        assert found is not None
        gpu, copies = lanes(found)["GPU"], lanes(found)["copies"]
        assert len(gpu.bars) == 2
        assert gpu.bars[0].label == "2 kernels, most of them matrix product"
        assert gpu.busy() == pytest.approx(0.0040001)
        assert [bar.phase for bar in copies.bars] == ["copy"]

    def test_a_record_of_less_than_two_steps_shows_nothing(self) -> None:
        short = Kernels(
            steps=1,
            begin_ns=200_000_000,
            end_ns=210_000_000,
            names=["k"],
            name=[0],
            start_ns=[200_000_000],
            duration_ns=[5],
        )
        assert self.looked_into(short) is None

    def test_no_gpu(self) -> None:
        assert kernel_steps.rows(searched(None, trial())) is None
