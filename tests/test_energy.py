from __future__ import annotations

import pytest

from hotloop import codec
from hotloop.energy import PowerLog, during, joules_between

SECOND = 10**9
TIMES = [0, SECOND, 2 * SECOND, 4 * SECOND]


class TestJoulesBetween:
    def test_by_the_counter_on_straight_lines_between_looks(self) -> None:
        log = PowerLog(TIMES, joules=[0.0, 100.0, 300.0, 900.0], watts=[None] * 4)
        assert joules_between(log, 0, 4 * SECOND) == 900
        assert joules_between(log, SECOND // 2, 3 * SECOND) == pytest.approx(550)

    def test_by_the_power_where_there_is_no_counter(self) -> None:
        log = PowerLog(TIMES, joules=[None] * 4, watts=[100.0, 200.0, 200.0, 400.0])
        assert joules_between(log, 0, 2 * SECOND) == pytest.approx(350)
        assert joules_between(log, 2 * SECOND, 3 * SECOND) == pytest.approx(250)

    def test_a_look_that_told_nothing_is_passed_over(self) -> None:
        log = PowerLog(TIMES, joules=[0.0, None, None, 400.0], watts=[None] * 4)
        assert joules_between(log, SECOND, 2 * SECOND) == pytest.approx(100)

    @pytest.mark.parametrize(
        ("begin", "end"), [(-1, SECOND), (SECOND, 5 * SECOND), (SECOND, SECOND), (SECOND, 0)]
    )
    def test_nothing_outside_of_what_was_looked_at(self, begin: int, end: int) -> None:
        log = PowerLog(TIMES, joules=[0.0, 1.0, 2.0, 3.0])
        assert joules_between(log, begin, end) is None

    def test_nothing_without_looks(self) -> None:
        assert joules_between(PowerLog(), 0, SECOND) is None
        silent = PowerLog(TIMES, joules=[None] * 4, watts=[None, 1.0, 1.0, None])
        assert joules_between(silent, 0, SECOND) is None


def test_a_column_between_two_times() -> None:
    log = PowerLog(TIMES, temperature=[40, None, 50, 60])
    assert during(log, log.temperature, 0, 2 * SECOND) == [40, 50]


def test_it_survives_json() -> None:
    log = PowerLog(TIMES, joules=[0.0, None, 1.5, 2.0], throttling=[0, 4, None, 4])
    assert codec.decode(codec.encode(log), PowerLog) == log
