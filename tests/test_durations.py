from __future__ import annotations

import random
from dataclasses import replace

import pytest

from hotloop import timeline
from hotloop.durations import Run
from hotloop.figures import figures, step_times
from hotloop.measurement import Events, Kind
from tests.builders import Log, loader, measurement, training


def told(events: Events) -> list[float]:
    return [step.seconds for step in timeline.steps(events)]


def measured(events: Events) -> list[float]:
    return list(Run(events).seconds())


def counted(events: Events, warm: int) -> int:
    return Run(events).turns(warm)


def wandering(seed: int) -> Events:
    """A loop of many shapes: accumulation, evaluation of a few batches, other optimizers."""
    draw, log = random.Random(seed), Log()
    evaluates, loads = draw.random(), draw.random() < 0.8
    sees = draw.random() < 0.7  # what is evaluated is what was trained
    forgets = draw.random() < 0.3  # to turn gradients off
    for _ in range(draw.randrange(2, 30)):
        for _ in range(draw.randrange(1, 3)):
            if loads:
                log.data(draw.random(), 8)
            log.forward(draw.random(), 8).backward(draw.random())
        log.optimizer(draw.random(), key=draw.randrange(2)).wait(draw.random())
        if draw.random() < evaluates / 2:
            for _ in range(draw.randrange(1, 4)):
                log.data(draw.random(), 8, key=1)
                if sees and forgets:
                    log.forward(draw.random(), 8)
                elif sees:
                    log.no_grad(draw.random(), 8)
        if loads and draw.random() < 0.1:
            log.data(draw.random(), -1)
    return log.events


@pytest.mark.parametrize("seed", range(40))
def test_steps_last_as_long_as_the_timeline_says(seed: int) -> None:
    events = wandering(seed)
    assert measured(events) == pytest.approx(told(events))


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("warm", [0, 1])
def test_batches_are_counted_as_the_timeline_does(seed: int, warm: int) -> None:
    events = wandering(seed)
    loaded = sum(step.batches for step in timeline.steps(events)[warm:])
    loaders = {
        key for kind, key in zip(events.kind, events.key, strict=True) if kind == Kind.DATA_END
    }
    assert counted(events, warm) == loaded if len(loaders) < 2 else counted(events, warm) <= loaded


@pytest.mark.parametrize("seed", range(10))
def test_the_loader_is_the_same(seed: int) -> None:
    events = wandering(seed)
    assert Run(events).loader() == timeline.training_loader(events)


def test_loaders_side_by_side_have_passes_of_their_own() -> None:
    """A step takes a batch of each; the second is the one that is drawn last."""
    log = Log()
    for number in range(9):
        log.data(1, 2, key=2 if number == 8 else 1).data(1, 8, key=3 if number == 8 else 0)
        log.forward(2).backward(2).optimizer(1)
    assert counted(log.events, 1) == 8  # the last is a loader's in its place
    seen = measurement(log.events)
    two = [loader(batches=50, batch_size=8), loader(batches=7, batch_size=2)]
    found = replace(seen, inventory=replace(seen.inventory, loaders=two))
    whole, quick = figures(found), step_times(found)
    assert whole is not None and quick is not None
    assert whole.epoch_seconds == quick.epoch_seconds == pytest.approx(50 * whole.step.mean)


def test_parameters_updated_by_hand() -> None:
    log = Log()
    for _ in range(4):
        log.forward(1, 8).backward(2)
    assert measured(log.events) == pytest.approx(told(log.events))


def test_nothing_happened() -> None:
    assert measured(Events()) == []
    assert counted(Events(), 0) == 0
    no_step = Log().forward(1).mark(Kind.DATA_END).events
    assert measured(no_step) == [] and counted(no_step, 0) == 0


def test_the_figures_of_steps_are_those_of_the_whole() -> None:
    made = measurement(training(40, first=500).events)
    whole, times = figures(made), step_times(made)
    assert whole is not None and times is not None
    assert times.step.mean == pytest.approx(whole.step.mean)
    assert times.warm_up_steps == whole.warm_up_steps
    assert times.one_off_seconds == pytest.approx(whole.one_off_seconds)
    assert times.epoch_seconds == pytest.approx(whole.epoch_seconds)
    assert times.step.fastest <= times.p05 <= times.step.p50
