from __future__ import annotations

from typing import Any

import pytest

from hotloop.inspection import Inspection, Operators
from hotloop.trial.trial import Trial
from hotloop.workshop.short_scripts import another_look
from tests.builders import measurement, training, trial


def looked(steps: int, **changes: Any) -> Trial:
    """Into a script that has so many steps, and ended while its lines were sampled."""
    made = measurement(training(steps).events)
    told = {"inspection": Inspection(steps=4), "measurement": made, "ran_out": True}
    return trial(**told | changes)


@pytest.mark.parametrize("steps", [12, 15, 40, 200])
def test_all_kinds_of_looking_find_room(steps: int) -> None:
    look = another_look(looked(steps))
    assert look is not None and look.seconds == 0
    sampled = look.warm_up + look.steps
    on_a_cpu = sampled + look.held_steps + 1 + look.counted_steps
    on_a_gpu = sampled + 1 + look.profiled_steps + look.counted_steps
    assert max(on_a_cpu, on_a_gpu) <= steps
    assert min(look.held_steps, look.profiled_steps) > 0


def test_of_a_script_of_a_few_steps_there_is_no_more_to_see() -> None:
    assert another_look(looked(6)) is None


def test_what_was_seen_need_not_be_seen_again() -> None:
    seen = Inspection(steps=4, operators=Operators(steps=2, count=10))
    assert another_look(looked(200, inspection=seen)) is None


def test_a_job_that_was_stopped_was_long_enough() -> None:
    assert another_look(looked(200, ran_out=False)) is None


def test_what_was_not_looked_into() -> None:
    assert another_look(looked(200, inspection=None)) is None
    assert another_look(looked(200, measurement=None)) is None
