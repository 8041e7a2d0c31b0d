from __future__ import annotations

import random

import pytest

from hotloop.diagnose.trend import FEWEST, trend


def test_a_straight_line() -> None:
    found = trend([3 + 2 * i for i in range(100)])
    assert found.rises and found.tau == 1.0
    assert found.total == pytest.approx(2 * 99, rel=0.02)


def test_single_outliers_count_for_nothing() -> None:
    found = trend([i + 1000 * (i % 17 == 3) for i in range(200)])
    assert found.rises and found.total == pytest.approx(199, rel=0.1)


def test_noise_does_not_rise() -> None:
    for seed in range(100):
        draw = random.Random(seed)
        assert not trend([draw.gauss(10, 1) for _ in range(60)]).rises


def test_a_fall_is_no_rise() -> None:
    assert not trend([float(-i) for i in range(50)]).rises


def test_few_values_show_nothing() -> None:
    assert not trend([float(i) for i in range(FEWEST - 1)]).rises
    assert not trend([]).rises
