from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.measurement import Events
from hotloop.plan import Plan
from hotloop.trial.trial import State, Trial
from hotloop.workshop.scores import DISTURBED, score_of, start_of
from tests import builders
from tests.simulated import SimulatedBench

AS_IT_IS = score_of(builders.trial(), "speed").value


def slowed(times: float) -> Trial:
    events = builders.training().events
    later = [int(at * times) for at in events.time_ns]
    slow = Events(later, events.kind, events.key, events.n)
    return builders.trial(measurement=builders.measurement(slow))


def bench(seconds: float | None, budget: int | None = None) -> SimulatedBench:
    return SimulatedBench(lambda levers: seconds, budget=budget)


def test_one_process_will_do_where_nothing_disturbed_it() -> None:
    unused = bench(0.001, budget=0)
    for looked in (None, builders.trial(), slowed(3.0), slowed(1.01 / DISTURBED)):
        assert start_of(builders.trial(), looked, "speed", Plan(), unused) == AS_IT_IS


def test_a_job_that_something_else_slowed_down_is_measured_again() -> None:
    """Else whatever comes next seems to make it faster."""
    assert AS_IT_IS is not None
    again = bench(AS_IT_IS)
    found = start_of(slowed(5.0), builders.trial(), "speed", Plan(), again)
    assert found == pytest.approx(AS_IT_IS)
    assert again.measured == [(Plan(), "baseline", None)]


def test_the_first_stands_where_the_second_is_no_faster_or_came_to_nothing() -> None:
    first = score_of(slowed(5.0), "speed").value
    for again in (bench(9.0), bench(None), bench(0.001, budget=0)):
        assert start_of(slowed(5.0), builders.trial(), "speed", Plan(), again) == first
    failed = replace(builders.trial(), state=State.CRASHED)
    assert start_of(slowed(5.0), failed, "speed", Plan(), bench(0.001)) == first
    assert start_of(failed, builders.trial(), "speed", Plan(), bench(0.001)) is None
