from __future__ import annotations

from dataclasses import replace

from hotloop.measurement import Events
from hotloop.search.climb import BudgetSpent
from hotloop.trial.trial import State, Trial
from hotloop.workshop.scores import DISTURBED, undisturbed
from tests import builders


def slowed(times: float) -> Trial:
    events = builders.training().events
    later = [int(at * times) for at in events.time_ns]
    slow = Events(later, events.kind, events.key, events.n)
    return builders.trial(measurement=builders.measurement(slow))


def never() -> Trial:
    raise AssertionError("there is no need")


def test_one_process_will_do_where_nothing_disturbed_it() -> None:
    first = builders.trial()
    for looked in (None, builders.trial(), slowed(3.0), slowed(1.01 / DISTURBED)):
        assert undisturbed(first, looked, "speed", never) is first


def test_a_job_that_something_else_slowed_down_is_measured_again() -> None:
    """Else whatever comes next seems to make it faster, and the wrong thing to limit it."""
    again = builders.trial()
    assert undisturbed(slowed(5.0), builders.trial(), "speed", lambda: again) is again


def test_the_first_stands_where_the_second_is_no_faster_or_came_to_nothing() -> None:
    def out_of_time() -> Trial:
        raise BudgetSpent

    first = slowed(5.0)
    failed = replace(builders.trial(), state=State.CRASHED)
    for again in (lambda: slowed(9.0), lambda: failed, out_of_time):
        assert undisturbed(first, builders.trial(), "speed", again) is first
    assert undisturbed(first, failed, "speed", never) is first
    assert undisturbed(failed, builders.trial(), "speed", never) is failed
