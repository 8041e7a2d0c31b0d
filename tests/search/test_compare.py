"""A claim only where it is proven, under noise as it is on real machines."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from hotloop.search.compare import (
    LEAST_PAIRS,
    Pair,
    compare,
    failed,
    self_comparison_floor,
    undisturbed,
)

STEP = 0.01
COMPARISONS = 200

Noise = Callable[[random.Random], Callable[[], float]]
"""A machine: draws the factor by which the next process is slower than it should be."""


def independent(spread: float) -> Noise:
    return lambda rng: lambda: math.exp(rng.gauss(0, spread))


def drifting(spread: float) -> Noise:
    """A neighbour comes and goes: what one process meets, the next one meets too, nearly."""

    def machine(rng: random.Random) -> Callable[[], float]:
        state = [0.0]

        def draw() -> float:
            state[0] = 0.8 * state[0] + rng.gauss(0, spread)
            return math.exp(state[0])

        return draw

    return machine


def with_outliers(spread: float) -> Noise:
    """Now and then a process takes half as long again."""

    def machine(rng: random.Random) -> Callable[[], float]:
        return lambda: math.exp(rng.gauss(0, spread)) * (1.5 if rng.random() < 0.1 else 1.0)

    return machine


RECORDED = json.loads(
    Path(__file__).parents[1].joinpath("recordings", "process-noise.json").read_text()
)["machines"]


def recorded(machine: str) -> Noise:
    """What processes of one job really took, one after the other, from anywhere on."""
    factors: list[float] = RECORDED[machine]["factors"]

    def begin(rng: random.Random) -> Callable[[], float]:
        place = [rng.randrange(len(factors))]

        def draw() -> float:
            place[0] += 1
            return factors[place[0] % len(factors)]

        return draw

    return begin


def run(noise: Noise, gain: float, seed: int, pairs: int = LEAST_PAIRS) -> list[Pair]:
    draw = noise(random.Random(seed))
    found = []
    for index in range(pairs):
        first, second = draw(), draw()  # alternating: who goes first changes from pair to pair
        ours, theirs = (first, second) if index % 2 else (second, first)
        found.append(Pair(STEP * ours, STEP * theirs / gain))
    return found


@pytest.mark.parametrize(
    "noise",
    [
        independent(0.01),
        independent(0.10),  # what was measured between processes of a busy two-core machine
        drifting(0.05),
        with_outliers(0.03),
        *map(recorded, RECORDED),
    ],
)
def test_nothing_is_claimed_where_nothing_is(noise: Noise) -> None:
    claims = sum(compare(run(noise, 1.0, seed)).faster for seed in range(COMPARISONS))
    assert claims <= 2


def test_a_clear_gain_is_found() -> None:
    found = sum(compare(run(independent(0.02), 1.3, seed)).faster for seed in range(COMPARISONS))
    assert found > 0.95 * COMPARISONS


def test_the_interval_holds_the_truth() -> None:
    truth = 1.2
    inside = 0
    for seed in range(COMPARISONS):
        one = compare(run(independent(0.05), truth, seed))
        inside += one.low <= truth <= one.high
    assert inside >= 0.98 * COMPARISONS  # 99% in the long run


def test_what_is_proven_but_tiny_does_not_count() -> None:
    one = compare(run(independent(0.0001), 1.01, 0))
    assert one.low > 1
    assert not one.faster
    assert "less than" in one.reason


def test_a_floor_raises_what_counts() -> None:
    pairs = run(independent(0.001), 1.04, 0)
    assert compare(pairs).faster
    assert not compare(pairs, floor=0.05).faster


def test_slower_is_said_to_be_slower() -> None:
    one = compare(run(independent(0.01), 0.8, 0))
    assert not one.faster
    assert one.reason.startswith("slower")
    assert one.ratio == pytest.approx(0.8, rel=0.05)


def test_too_few_pairs_are_no_comparison() -> None:
    with pytest.raises(ValueError, match="prove nothing"):
        compare(run(independent(0.01), 2.0, 0, pairs=LEAST_PAIRS - 1))


def test_a_caller_may_be_content_with_fewer_pairs() -> None:
    pairs = run(independent(0.001), 2.0, 0, pairs=3)
    assert compare(pairs, least_pairs=3).faster


def test_a_failure_claims_nothing_whatever_came_before() -> None:
    one = failed(run(independent(0.001), 2.0, 0), "the plan failed")
    assert (one.faster, one.reason) == (False, "the plan failed")
    assert one.ratio == pytest.approx(2.0, rel=0.01)
    assert failed([], "the plan failed").ratio == 1.0


def test_the_floor_is_two_standard_errors_of_successive_baselines() -> None:
    assert self_comparison_floor([1.0, 1.1, 1.0]) == pytest.approx(0.2100, abs=1e-4)
    assert self_comparison_floor([1.0, 1.0, 1.0]) == 0.0


def test_one_ratio_has_no_spread_and_makes_no_floor() -> None:
    assert self_comparison_floor([1.0, 2.0]) == 0.0


class TestDisturbed:
    def test_a_baseline_that_took_twice_as_long_as_usual_does_not_count(self) -> None:
        pairs = [Pair(1.0, 0.9), Pair(13.0, 0.9), Pair(1.1, 0.9), Pair(0.9, 0.9)]
        counted, disturbed = undisturbed(pairs)
        assert disturbed == [Pair(13.0, 0.9)]
        assert counted == [pairs[0], *pairs[2:]]

    def test_a_candidate_that_did_counts(self) -> None:
        pairs = [Pair(1.0, 0.9), Pair(1.0, 13.0), Pair(1.0, 0.9)]
        assert undisturbed(pairs) == (pairs, [])

    def test_of_two_nobody_knows_which_is_usual(self) -> None:
        pairs = [Pair(1.0, 1.0), Pair(13.0, 1.0)]
        assert undisturbed(pairs) == (pairs, [])

    def test_no_more_than_two_are_left_out(self) -> None:
        pairs = [Pair(1.0, 1.0)] * 4 + [Pair(5.0, 1.0), Pair(6.0, 1.0), Pair(7.0, 1.0)]
        counted, disturbed = undisturbed(pairs)
        assert disturbed == [Pair(6.0, 1.0), Pair(7.0, 1.0)]
        assert Pair(5.0, 1.0) in counted
