"""A wait pays for the time that the GPU idles afterwards, but never more than it lasted."""

from __future__ import annotations

import pytest

from hotloop.diagnose.waits import Wait, charge

MS = 1_000_000


def total(charged: list[dict[int, float]]) -> float:
    return sum(sum(each.values()) for each in charged)


@pytest.mark.parametrize(
    ("waited", "idled", "paid"), [(0.005, 2, 0.002), (0.001, 4, 0.001), (0.0, 4, 0.0)]
)
def test_no_more_than_it_lasted_and_no_more_than_idles(
    waited: float, idled: int, paid: float
) -> None:
    charged = charge([(10 * MS, (10 + idled) * MS)], [Wait(5 * MS, waited, 0)])
    assert total(charged) == pytest.approx(paid)


def test_what_idles_before_a_wait_is_the_doing_of_the_one_before() -> None:
    idle = [(0, 4 * MS), (10 * MS, 12 * MS)]
    waits = [Wait(3 * MS, 0.0, 0), Wait(8 * MS, 0.002, 1)]
    assert total(charge(idle, waits)) == pytest.approx(0.002)


def test_a_wait_at_the_end_of_a_step_shows_at_the_beginning_of_the_next() -> None:
    charged = charge([(0, 2 * MS)], [Wait(9 * MS, 0.005, 0)])
    assert charged == [{0: pytest.approx(0.002)}]


def test_a_copy_that_blocks_would_wait_instead() -> None:
    idle = [(10 * MS, 11 * MS), (12 * MS, 15 * MS)]
    waits = [Wait(5 * MS, 0.005, 0), Wait(11 * MS, 0.0, None)]
    assert charge(idle, waits) == [{0: pytest.approx(0.001)}, {}]


def test_the_last_wait_pays_first() -> None:
    waits = [Wait(1 * MS, 0.001, 0), Wait(2 * MS, 0.001, 1)]
    assert charge([(3 * MS, 5 * MS)], waits) == [{1: pytest.approx(0.001), 0: pytest.approx(0.001)}]
