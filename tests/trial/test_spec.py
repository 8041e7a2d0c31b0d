from __future__ import annotations

import pytest

from hotloop.trial.spec import StopRule

RULE = StopRule(
    warm_up=10, min_steps=40, min_seconds=8.0, max_seconds=45.0, few_steps=5, steps=None
)


@pytest.mark.parametrize(
    ("steps", "seconds", "enough"),
    [
        (49, 20.0, False),  # too few steps
        (50, 7.9, False),  # too short a time
        (50, 8.0, True),
        (5000, 7.9, False),
        (4, 45.0, False),  # slow, and nothing to speak of yet
        (5, 44.9, False),
        (5, 45.0, True),  # slow, but measured well enough
        (0, 1e6, False),
    ],
)
def test_enough_is_steps_and_time(steps: int, seconds: float, enough: bool) -> None:
    assert RULE.satisfied(steps, seconds) is enough


@pytest.mark.parametrize(("steps", "enough"), [(29, False), (30, True), (31, True)])
@pytest.mark.parametrize("seconds", [0.0, 1e6])
def test_a_number_asked_for_is_exact(steps: int, seconds: float, enough: bool) -> None:
    assert StopRule(warm_up=10, steps=20).satisfied(steps, seconds) is enough


@pytest.mark.parametrize(
    ("a_step", "needed"), [(0.0, 13), (0.79, 13), (1.0, 11), (5.0, 8), (float("inf"), 8)]
)
def test_a_slow_job_warms_up_in_fewer_steps(a_step: float, needed: int) -> None:
    rule = StopRule(warm_up=10, steps=3, warm_up_seconds=8.0, few_steps=5)
    assert not rule.satisfied(needed - 1, 100.0, a_step)
    assert rule.satisfied(needed, 100.0, a_step)


def test_where_there_is_no_warm_up_a_slow_job_has_none() -> None:
    assert StopRule(warm_up=0, steps=3).satisfied(3, 100.0, a_step=30.0)
