from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.diagnose.diagnosis import diagnose
from hotloop.diagnose.rules.frozen_model import frozen_model
from hotloop.measurement import Software
from tests.builders import Log, model
from tests.diagnose.making import case, hand_drawn

HEAD, BACKBONE = model(name="Head"), model(name="Backbone", trainable=0)


def job(ms: float = 12.0) -> Log:
    return hand_drawn(lambda log: log.no_grad(ms, 8, key=1).forward(4, 8).backward(3).optimizer(1))


def test_features_are_computed_in_every_step() -> None:
    made = case(job(), loaders=[], models=[HEAD, BACKBONE])
    finding = frozen_model(made)
    assert finding is not None and not finding.is_limit
    assert finding.title == "60% of a step goes through a model that does not learn"
    assert finding.evidence[0].startswith("Backbone: 12.0 ms a step")
    said = "Nothing stands out, but 60% of a step goes through a model that does not learn."
    assert diagnose(made).verdict == said


@pytest.mark.parametrize("models", [[HEAD, HEAD], [HEAD]])
def test_one_that_learns_elsewhere_is_none(models: list[object]) -> None:
    assert frozen_model(case(job(), loaders=[], models=models)) is None


def test_a_little_is_no_matter() -> None:
    assert frozen_model(case(job(1.0), loaders=[], models=[HEAD, BACKBONE])) is None


def test_an_evaluation_is_none() -> None:
    log = Log()
    for number in range(40):
        log.forward(4, 8).backward(3).optimizer(1)
        if number % 8 == 7:
            log.no_grad(50, 8, key=1)
    log.forward(4, 8).backward(3).optimizer(1)
    assert frozen_model(case(log, loaders=[], models=[HEAD, BACKBONE])) is None


def test_a_gpus_time_is_not_the_cpus() -> None:
    made = case(job(), loaders=[], models=[HEAD, BACKBONE])
    on_gpu = replace(made.measurement, software=Software(device="NVIDIA H200"))
    assert frozen_model(replace(made, measurement=on_gpu)) is None
