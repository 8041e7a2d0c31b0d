from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from hotloop.equivalence.arithmetic import ONE_TENSOR, closeness, lost
from hotloop.evidence import Difference

NOISE = 1e-6
"""Of the yardstick, relative to tensors of norm 1."""


def seen(
    difference: float | None,
    step: int = 0,
    tensor: str = "w",
    quantity: str = "gradient",
    reference: float = 1.0,
    along: float = 1.0,
    ulp: float = 1e-7,
    unsettled: float = 0.0,
    undecided: int = 0,
) -> Difference:
    measured = reference, difference, along, ulp, unsettled, undecided
    return Difference(step, quantity, tensor, *measured)


def ratios(candidate: Sequence[Difference], yardstick: Sequence[Difference]) -> dict[str, float]:
    return {one.what: one.ratio for one in closeness(candidate, yardstick, factor=10.0)}


def test_distance_is_told_in_units_of_what_would_still_pass() -> None:
    found = ratios([seen(20 * NOISE)], [seen(NOISE)])
    assert found["the gradients"] == pytest.approx(2.0)
    assert found["the gradient of w"] == pytest.approx(2.0 / ONE_TENSOR)
    assert found["the size of the gradients"] == 0.0


def test_the_farthest_comes_first() -> None:
    found = closeness([seen(20 * NOISE)], [seen(NOISE)], factor=10.0)
    assert found[0].what == "the gradients"
    assert [one.ratio for one in found] == sorted((one.ratio for one in found), reverse=True)


def test_the_same_is_at_no_distance() -> None:
    assert set(ratios([seen(0.0)], [seen(NOISE)]).values()) == {0.0}


def test_gradients_and_updates_are_told_apart() -> None:
    candidate = [seen(0.0), seen(20 * NOISE, quantity="update")]
    found = ratios(candidate, [seen(NOISE), seen(NOISE, quantity="update")])
    assert found["the updates"] == pytest.approx(2.0)
    assert found["the gradients"] == 0.0


def test_an_update_is_judged_where_its_gradient_is_known() -> None:
    """As of the bias of an attention's keys, whose gradient is zero but for rounding."""
    bias: dict[str, Any] = {"tensor": "bias", "quantity": "update", "reference": 1e-3}
    weight: dict[str, Any] = {"tensor": "w", "quantity": "update", "reference": 100.0}
    yardstick = [seen(NOISE, **bias, undecided=100), seen(100 * NOISE, **weight)]
    unknown: dict[str, Any] = {"unsettled": 49.9 * NOISE, "undecided": 150}
    candidate = [seen(50 * NOISE, **bias, **unknown), seen(100 * NOISE, **weight)]
    found = ratios(candidate, yardstick)
    assert found["the update of bias"] == pytest.approx((50**2 - 49.9**2) ** 0.5 / 20)
    known = [seen(50 * NOISE, **bias), seen(100 * NOISE, **weight)]
    assert ratios(known, yardstick)["the update of bias"] == pytest.approx(2.5)


def test_gradients_that_the_yardstick_knows_are_no_excuse() -> None:
    """Small ones that a plan has lost: they hardly show in the gradients, but in the updates."""
    lost = seen(50 * NOISE, quantity="update", unsettled=50 * NOISE, undecided=150)
    for known in (0, 10):
        found = ratios([lost], [seen(NOISE, quantity="update", undecided=known)])
        assert found["the update of w"] == pytest.approx(2.5)


def test_all_updates_together_are_judged_whether_their_gradients_are_known_or_not() -> None:
    candidate = [seen(20 * NOISE, quantity="update", unsettled=20 * NOISE, undecided=9)]
    found = ratios(candidate, [seen(NOISE, quantity="update", undecided=9)])
    assert found["the update of w"] == 0.0
    assert found["the updates"] == pytest.approx(2.0)


def test_a_single_step_that_jumps_means_nothing() -> None:
    candidate = [seen(1.0 if step == 2 else NOISE, step) for step in range(5)]
    yardstick = [seen(NOISE, step) for step in range(5)]
    assert max(ratios(candidate, yardstick).values()) == pytest.approx(0.1)


def test_most_steps_that_jump_mean_something() -> None:
    candidate = [seen(1.0 if step > 1 else NOISE, step) for step in range(5)]
    yardstick = [seen(NOISE, step) for step in range(5)]
    assert ratios(candidate, yardstick)["the gradients"] > 1


def test_one_tensor_that_goes_wrong_is_not_hidden_by_large_ones() -> None:
    candidate = [seen(NOISE * 1000, tensor="large", reference=1000.0), seen(0.01, tensor="small")]
    yardstick = [seen(NOISE * 1000, tensor="large", reference=1000.0), seen(NOISE, tensor="small")]
    found = ratios(candidate, yardstick)
    assert found["the gradient of small"] > 1 > found["the gradient of large"]


def test_a_tensor_that_the_yardstick_left_exact_is_measured_by_the_others() -> None:
    candidate = [seen(5 * NOISE, tensor="a"), seen(5 * NOISE, tensor="b")]
    yardstick = [seen(NOISE, tensor="a"), seen(0.0, tensor="b")]
    found = ratios(candidate, yardstick)
    assert 0 < found["the gradient of b"] < 1


def test_no_tensor_is_held_to_less_than_its_own_rounding() -> None:
    found = ratios([seen(1e-7)], [seen(0.0, ulp=1e-7)])
    assert found["the gradients"] == pytest.approx(0.1)


def test_a_size_that_is_always_off_is_seen_where_the_distance_is_not() -> None:
    """Coarse noise has no direction; an update that is 5% short has one."""
    candidate = [seen(0.05, along=0.95)]
    found = ratios(candidate, [seen(0.01, along=1.0001)])
    assert found["the gradients"] < 1 < found["the size of the gradients"]


def test_what_is_not_a_number_is_infinitely_far() -> None:
    found = ratios([seen(None)], [seen(NOISE)])
    assert found["the gradients"] == math.inf
    assert found["the gradient of w"] == math.inf


def test_a_yardstick_that_is_not_a_number_measures_nothing() -> None:
    assert closeness([seen(1.0)], [seen(None)], factor=10.0) == []
    found = ratios([seen(1.0), seen(1.0, step=1)], [seen(None), seen(NOISE, step=1)])
    assert found["the gradients"] > 1


def test_steps_that_only_one_side_has_are_not_compared() -> None:
    assert closeness([seen(1.0, step=1)], [seen(NOISE, step=2)], factor=10.0) == []
    assert closeness([], [seen(NOISE)], factor=10.0) == []


def test_where_all_is_zero_only_zero_is_the_same() -> None:
    nothing = seen(0.0, reference=0.0, ulp=0.0)
    assert set(ratios([nothing], [nothing]).values()) == {0.0}
    found = ratios([seen(0.5, reference=0.0, ulp=0.0)], [nothing])
    assert found["the gradients"] == math.inf


def test_tensors_without_a_number_are_named_once() -> None:
    found = list(lost([seen(0.0, tensor="a"), seen(None, 3), seen(None, 5, quantity="update")]))
    assert found == ["step 6: the update of w is missing or not a number"]


def test_a_yardstick_that_is_lost_itself_excuses_nothing() -> None:
    """Rounding in a deep network may leave nothing of a gradient; then nothing can be shown."""
    assert ratios([seen(0.6)], [seen(0.4)])["the gradients"] > 1
    assert ratios([seen(0.4)], [seen(0.4)])["the gradients"] < 1
