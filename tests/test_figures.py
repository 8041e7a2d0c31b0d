from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.figures import Figures, figures, step_times, training_loader
from hotloop.measurement import Events, GpuTimes, Inventory, Kind, Losses
from tests.builders import Log, loader, measurement, on_gpu, training

GPU_KINDS = tuple(
    kind
    for kind in Kind
    if kind // 2 in {Kind.FORWARD_BEGIN // 2, Kind.BACKWARD_BEGIN // 2, Kind.OPTIMIZER_BEGIN // 2}
)


def of(log: Log, loaders: int | None = 1, batches: int | None = 100) -> Figures:
    """The figures of a log, from so many loaders that know their length, or do not."""
    inventory = Inventory(loaders=[loader(batches=batches)] * (loaders or 0))
    found = figures(measurement(log.events, inventory=inventory))
    assert found is not None
    return found


def shares(found: Figures) -> dict[str, float]:
    return {share.phase: round(share.share, 6) for share in found.phases}


def test_of_an_ordinary_job() -> None:
    found = of(training(20))
    assert found.step.mean == pytest.approx(0.020)
    assert found.step.spread == pytest.approx(0, abs=1e-9)
    assert found.step.count == 20 - found.warm_up_steps
    assert found.samples_per_second == pytest.approx(8 / 0.020)
    assert found.batches_per_second == pytest.approx(50)
    assert found.epoch_seconds == pytest.approx(100 * 0.020)
    assert found.pauses.count == 0


def test_shares_add_up_to_the_step() -> None:
    log = Log()
    for _ in range(20):
        log.wait(5).step()
    found = of(log)
    assert shares(found) == {
        "data": 4 / 25,
        "forward": 5 / 25,
        "backward": 8 / 25,
        "optimizer": 3 / 25,
        "rest": 5 / 25,
    }
    assert sum(share.seconds for share in found.phases) == pytest.approx(found.step.mean)


def test_what_is_unaccounted_for_is_always_told() -> None:
    assert shares(of(training(20)))["rest"] == 0
    assert "copy" not in shares(of(training(20)))


@pytest.mark.parametrize("steps", [0, 1])
def test_too_few_steps_have_none(steps: int) -> None:
    log = training(steps) if steps else Log()
    assert figures(measurement(log.events)) is None


def test_two_steps_are_enough() -> None:
    assert of(training(2)).step.count == 1


def test_an_epoch_of_accumulated_gradients() -> None:
    """Four batches to a step: an epoch of 100 batches has 25 steps."""
    log = Log()
    for _ in range(20):
        for _ in range(4):
            log.data(1, n=8).forward(3).backward(5)
        log.optimizer(4)
    found = of(log)
    assert found.step.mean == pytest.approx(0.040)
    assert found.epoch_seconds == pytest.approx(25 * 0.040)
    assert found.batches_per_second == pytest.approx(100)
    assert found.samples_per_second == pytest.approx(800)


def fed_by_workers(persistent: bool = False, again: int = -1, workers: int = 2) -> Figures:
    """Passes of 100 batches, of which the first takes 300 + 101 ms to begin."""
    log = Log()
    for number in range(20):
        if number in (0, again):
            log.data(300, n=-1)
        log.data(101 if number in (0, again) else 1, n=8).forward(10).backward(8).optimizer(1)
    seen = loader(batches=100, workers=workers, persistent=persistent)
    made = measurement(log.events, inventory=Inventory(loaders=[seen]))
    found, times = figures(made), step_times(made)
    assert found is not None and times is not None
    assert found.epoch_seconds == pytest.approx(times.epoch_seconds)
    return found


def test_an_epoch_begins_with_its_workers() -> None:
    assert fed_by_workers().epoch_seconds == pytest.approx(100 * 0.020 + 0.4)


def test_workers_that_stay_are_started_once() -> None:
    assert fed_by_workers(persistent=True).epoch_seconds == pytest.approx(100 * 0.020)
    assert fed_by_workers(workers=0).epoch_seconds == pytest.approx(100 * 0.020)


def test_what_steps_tell_of_a_beginning_is_not_told_twice() -> None:
    found = fed_by_workers(again=15)
    assert found.epoch_seconds == pytest.approx(100 * found.step.mean)


def test_an_epoch_of_unknown_length_has_no_time() -> None:
    assert of(training(20), batches=None).epoch_seconds is None


def test_a_pass_without_an_end_is_no_epoch() -> None:
    assert of(training(20), batches=10**9).epoch_seconds is None


def test_batches_drawn_by_hand() -> None:
    log = Log()
    for _ in range(20):
        log.forward(5, n=16).backward(12).optimizer(3)
    found = of(log, loaders=0)
    assert found.epoch_seconds is None
    assert found.samples_per_second == pytest.approx(16 / 0.020)
    assert found.batches_per_second == pytest.approx(1 / 0.020)


def test_samples_that_nobody_could_count_are_unknown() -> None:
    log = Log()
    for _ in range(20):
        log.forward(5).backward(12).optimizer(3)
    assert of(log, loaders=0).samples_per_second is None


def test_a_one_off_cost_is_apart() -> None:
    found = of(training(40, first=3000))
    assert found.warm_up_steps >= 1
    assert found.one_off_seconds == pytest.approx(3.0)
    assert found.step.slowest == pytest.approx(0.020)


def test_without_one_it_is_nothing() -> None:
    assert of(training(40)).one_off_seconds == pytest.approx(0, abs=1e-9)


def test_discovery_is_never_timed() -> None:
    found = figures(measurement(training(20).events, discovery_steps=5))
    assert found is not None
    assert found.warm_up_steps == 5


def test_the_first_step_is_never_timed() -> None:
    assert of(training(20)).warm_up_steps == 1


def test_pauses_are_apart() -> None:
    log = training(20)
    log.data(10, n=99, key=1).no_grad(170, n=99)
    for _ in range(20):
        log.step()
    found = of(log)
    assert found.pauses.count == 1
    assert found.pauses.seconds == pytest.approx(0.180)
    assert found.pauses.share_of_run == pytest.approx(0.180 / (40 * 0.020 + 0.180))
    assert found.step.slowest == pytest.approx(0.020)
    assert found.samples_per_second == pytest.approx(8 / 0.020)


def test_losses_are_the_first_and_the_last_number() -> None:
    events = training(4).events
    begins = [i for i, kind in enumerate(events.kind) if kind == Kind.BACKWARD_BEGIN]
    losses = Losses(event=begins, value=[None, 3.0, 2.0, None], not_finite=2)
    found = figures(measurement(events, losses=losses))
    assert found is not None
    assert (found.first_loss, found.last_loss, found.losses_not_finite) == (3.0, 2.0, 2)


def test_no_losses_are_not_zero() -> None:
    found = of(training(20))
    assert found.first_loss is None
    assert found.last_loss is None


class TestOnTheGpu:
    def test_spans_share_its_own_step(self) -> None:
        events = training(20).events
        found = figures(measurement(events, gpu=on_gpu(events, *GPU_KINDS)))
        assert found is not None
        spans = {share.phase: round(share.share, 6) for share in found.gpu_phases}
        assert spans == {"data": 0.2, "forward": 0.25, "backward": 0.4, "optimizer": 0.15}

    def test_an_evaluation_is_in_none_of_them(self) -> None:
        log = training(20).no_grad(400)
        for _ in range(20):
            log.step()
        found = figures(measurement(log.events, gpu=on_gpu(log.events, *GPU_KINDS)))
        assert found is not None
        assert sum(share.share for share in found.gpu_phases) == pytest.approx(1.0)

    def test_without_one_there_are_none(self) -> None:
        assert of(training(20)).gpu_phases == ()
        found = figures(measurement(gpu=GpuTimes()))
        assert found is not None
        assert found.gpu_phases == ()


class TestTrainingLoader:
    def test_is_the_one_that_most_batches_came_from(self) -> None:
        log = Log()
        for _ in range(4):
            log.data(1, n=8, key=1).data(1, n=8, key=1).data(1, n=8, key=0)
        first, second = loader(dataset="Validation"), loader(dataset="Training")
        made = measurement(log.events, inventory=Inventory(loaders=[first, second]))
        assert training_loader(made) == second

    def test_may_be_unknown(self) -> None:
        made = measurement()
        assert training_loader(replace(made, events=Events())) is None
        assert training_loader(replace(made, inventory=Inventory())) is None
