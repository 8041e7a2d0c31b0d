from __future__ import annotations

from collections.abc import Callable

import pytest

from hotloop.search.batch_sizes import GAIN, Curve, SizePoint, explore

Rate = Callable[[int], float]


class Machine:
    """Stands for trials: a rate by size, and memory up to a size."""

    def __init__(self, rate: Rate, most: int = 10**9) -> None:
        self.rate = rate
        self.most = most
        self.ran: list[int] = []

    def point(self, size: int) -> SizePoint:
        return SizePoint(size, self.rate(size), size * 100)

    def run(self, size: int) -> SizePoint:
        self.ran.append(size)
        if size > self.most:
            return SizePoint(size, None, None, "The GPU's memory was exhausted.")
        return self.point(size)

    def explore(self, start: int = 32, largest: int | None = None) -> Curve:
        return explore(self.point(start), self.run, largest)


def saturating(full: int) -> Rate:
    """Grows with the size up to there, and not at all beyond."""
    return lambda size: float(min(size, full))


def best(curve: Curve) -> int:
    assert curve.best is not None
    return curve.best.size


def plateau(curve: Curve) -> int:
    assert curve.plateau is not None
    return curve.plateau.size


def test_doubles_until_the_plateau_and_no_further() -> None:
    machine = Machine(saturating(256))
    curve = machine.explore()
    assert machine.ran[:5] == [64, 128, 256, 512, 1024]
    assert max(machine.ran) == 1024
    assert plateau(curve) == 256


def test_the_fastest_is_found_between_two_doublings() -> None:
    machine = Machine(lambda size: 1000.0 - abs(size - 180))
    curve = machine.explore()
    assert 128 < best(curve) < 256


@pytest.mark.parametrize("most", [32, 63, 64, 100, 500, 777])
def test_memory_that_is_full_is_survived_and_nothing_that_failed_is_handed_out(most: int) -> None:
    machine = Machine(lambda size: float(size), most)
    curve = machine.explore()
    failed = [point for point in curve.points if point.rate is None]
    assert failed and all("exhausted" in point.reason for point in failed)
    assert best(curve) <= most < min(point.size for point in failed)
    assert best(curve) in {32, *machine.ran}
    assert best(curve) > 0.8 * most  # refining has come close


def test_no_size_is_reported_that_was_not_run() -> None:
    machine = Machine(saturating(300), most=400)
    curve = machine.explore()
    assert {point.size for point in curve.points} == {32, *machine.ran}
    assert len(machine.ran) == len(set(machine.ran))
    assert [point.size for point in curve.points] == sorted(point.size for point in curve.points)


def test_smaller_sizes_are_looked_at_where_larger_ones_win_nothing() -> None:
    machine = Machine(lambda size: 1000.0 / size)
    assert best(machine.explore()) == 1


def test_a_batch_is_no_larger_than_the_data() -> None:
    machine = Machine(lambda size: float(size))
    assert best(machine.explore(32, largest=200)) <= 200
    assert max(machine.ran) <= 200


def test_gains_below_what_counts_are_a_plateau() -> None:
    machine = Machine(lambda size: 100 + GAIN * 20 * (size > 32) + size * 1e-6)
    curve = machine.explore()
    assert plateau(curve) == 32


def test_a_single_slow_run_does_not_end_the_search() -> None:
    machine = Machine(lambda size: 10.0 if size == 128 else float(size))
    assert best(machine.explore(largest=1024)) == 1024


def test_of_nothing_there_is_no_best() -> None:
    curve = Curve((SizePoint(32, None, None, "It crashed."),))
    assert curve.best is None and curve.plateau is None


def test_few_runs() -> None:
    for full in (32, 100, 1000, 4000):
        machine = Machine(saturating(full))
        machine.explore()
        assert len(machine.ran) <= 14
