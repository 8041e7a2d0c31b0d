from __future__ import annotations

from hotloop.runtime.stopping import Stopping
from hotloop.trial.spec import StopRule

RULE = StopRule(warm_up=10, steps=1)


def steps_of(lasting: list[float], rule: StopRule = RULE) -> int:
    """How many it sees after the first one, which last so long."""
    stopping, seconds = Stopping(rule), 0.0
    assert not stopping.satisfied(0, 0.0)
    for number, one in enumerate(lasting, start=1):
        seconds += one
        if stopping.satisfied(number, seconds):
            return number
    raise AssertionError("it never had enough")


def test_a_slow_job_need_not_warm_up_for_ten_steps() -> None:
    assert steps_of([5.0] * 40) == 6


def test_any_other_does() -> None:
    assert steps_of([0.1] * 40) == 11


def test_a_step_that_compiles_makes_no_slow_job() -> None:
    assert steps_of([60.0, 0.1, 30.0, *[0.1] * 40]) == 11


def test_quick_steps_are_asked_about_now_and_then() -> None:
    stopping = Stopping(RULE)
    for steps, seconds in ((0, 0.0), (4, 0.2), (9, 0.4)):
        assert not stopping.satisfied(steps, seconds)
    assert not stopping.satisfied(10, 5.4)  # a single long one
    assert stopping.satisfied(11, 5.5)


def test_without_a_number_of_steps_it_is_the_rule() -> None:
    assert steps_of([5.0] * 40, StopRule()) == 9
