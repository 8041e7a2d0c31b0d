from __future__ import annotations

import random

import pytest

from hotloop import stats


def noise(count: int, seed: int = 1, centre: float = 1.0, spread: float = 0.02) -> list[float]:
    rng = random.Random(seed)
    return [rng.gauss(centre, spread) for _ in range(count)]


@pytest.mark.parametrize("count", [1, 2, 3, 10, 101])
@pytest.mark.parametrize("percent", [0, 5, 25, 50, 90, 95, 99, 100])
def test_a_percentile_is_numpys(count: int, percent: float) -> None:
    numpy = pytest.importorskip("numpy")
    values = noise(count, seed=count, spread=1.0)
    assert stats.percentile(values, percent) == pytest.approx(numpy.percentile(values, percent))


def test_summary() -> None:
    expected = {
        "count": 4,
        "mean": 2.5,
        "spread": 1.2909944487,
        "p50": 2.5,
        "p95": 3.85,
        "p99": 3.97,
        "fastest": 1.0,
        "slowest": 4.0,
    }
    assert vars(stats.summary([4.0, 1.0, 3.0, 2.0])) == pytest.approx(expected)


def test_a_single_value_has_no_spread() -> None:
    found = stats.summary([3.0])
    assert (found.count, found.mean, found.spread, found.p99) == (1, 3.0, 0.0, 3.0)


def test_of_nothing_there_is_no_summary() -> None:
    with pytest.raises(ValueError):
        stats.summary([])


class TestWarmUp:
    def test_a_compiling_first_step(self) -> None:
        assert 1 <= stats.warm_up([30.0, *noise(60)]) <= 3

    def test_several_slow_steps(self) -> None:
        assert 3 <= stats.warm_up([30.0, 5.0, 12.0, *noise(60)]) <= 6

    def test_a_slow_ramp(self) -> None:
        ramp = [1.0 + (20 - i) * 0.05 for i in range(20)]
        steady = noise(80)
        assert 14 <= stats.warm_up(ramp + steady) <= 25

    def test_a_first_step_that_is_too_fast(self) -> None:
        """A loader's prefetched batches: the first steps are no better evidence than slow ones."""
        assert 4 <= stats.warm_up([0.3] * 4 + noise(60)) <= 6

    @pytest.mark.parametrize("seed", range(20))
    def test_none(self, seed: int) -> None:
        assert stats.warm_up(noise(100, seed)) <= 10

    @pytest.mark.parametrize("place", [30, 49, 50, 70, 99])
    def test_a_pause_later_on_is_none(self, place: int) -> None:
        """An evaluation or a checkpoint makes nothing before it a warm-up."""
        values = noise(100)
        values[place] = 50.0
        assert stats.warm_up(values) <= 10

    def test_a_pause_does_not_hide_one(self) -> None:
        values = [30.0, 20.0, *noise(98)]
        values[60] = 50.0
        assert 2 <= stats.warm_up(values) <= 5

    def test_a_constant_series_has_none(self) -> None:
        assert stats.warm_up([0.1] * 50) == 0

    def test_at_most_half_is_dropped(self) -> None:
        assert stats.warm_up([100.0 - i for i in range(100)]) <= 50

    def test_at_least_what_is_known_to_be_disturbed(self) -> None:
        assert stats.warm_up([0.1] * 50, at_least=5) == 5
        assert stats.warm_up([30.0, *noise(60)], at_least=8) == 8

    @pytest.mark.parametrize("values", [[], [1.0], [9.0, 1.0], [9.0, 1.0, 1.0]])
    def test_a_tiny_series_is_kept(self, values: list[float]) -> None:
        assert stats.warm_up(values) == 0

    @pytest.mark.parametrize(("count", "dropped"), [(0, 0), (1, 0), (2, 1), (3, 2), (4, 3)])
    def test_something_is_always_left(self, count: int, dropped: int) -> None:
        assert stats.warm_up([0.1] * count, at_least=5) == dropped


@pytest.mark.parametrize("count", [3, 500, 3000])
def test_many_values_are_judged_as_few_are(count: int) -> None:
    draw = random.Random(count)
    values = [draw.lognormvariate(0, 0.2) for _ in range(count)]
    assert stats._errors_of_many(values) == stats._marginal_errors(values)


def test_warm_up_of_many_steps() -> None:
    draw = random.Random(0)
    values = [3.0] * 40 + [1 + draw.random() / 100 for _ in range(3000)]
    assert stats.warm_up(values) == 40


class TestDifference:
    def test_two_samples_that_spread_alike(self) -> None:
        found = stats.difference_interval([1.0, 2.0, 3.0], [5.0, 6.0, 7.0], 0.025)
        assert found is not None and found.mean == pytest.approx(4)
        # t(4) at 0.975 is 2.776, the pooled spread 1, and the error √(2/3).
        assert found.high - found.mean == pytest.approx(2.7764 * (2 / 3) ** 0.5, rel=1e-4)

    def test_one_value_borrows_the_others_spread(self) -> None:
        found = stats.difference_interval([1.0, 2.0, 3.0], [5.0], 0.025)
        assert found is not None and found.low < found.mean == 3 < found.high

    @pytest.mark.parametrize(("first", "second"), [([1.0], [2.0]), ([], [1.0, 2.0])])
    def test_too_little_for_an_interval(self, first: list[float], second: list[float]) -> None:
        assert stats.difference_interval(first, second, 0.025) is None
