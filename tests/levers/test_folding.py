"""The arithmetic of folding, without graphs."""

from __future__ import annotations

import random

import pytest

from hotloop.levers.folding import fold, is_worth_it


@pytest.mark.parametrize("case", range(60))
def test_the_same_products_are_summed(case: int) -> None:
    chance = random.Random(case)
    stride = chance.randint(1, 5)
    kernel = chance.randint(stride, 9)
    padding = chance.randint(0, kernel // 2)
    size = chance.randint(max(1, kernel - 2 * padding), 30)
    pixels = [chance.randint(1, 9) for _ in range(size)]
    weights = [chance.randint(1, 9) for _ in range(kernel)]
    wide = [0] * padding + pixels + [0] * padding
    expected = [
        sum(wide[place + tap] * weights[tap] for tap in range(kernel))
        for place in range(0, len(wide) - kernel + 1, stride)
    ]

    made = fold(size, kernel, stride, padding)
    before, behind = made.pixels
    laid = [0] * before + pixels + [0] * max(0, behind)
    laid = laid[: len(laid) + min(0, behind)]
    spread = [0] * made.weights[0] + weights + [0] * made.weights[1]
    assert len(laid) % stride == 0 and len(spread) == made.taps * stride
    tiles = [laid[place : place + stride] for place in range(0, len(laid), stride)]
    taps = [spread[place : place + stride] for place in range(0, len(spread), stride)]
    results = [
        sum(
            pixel * weight
            for tile, tap in zip(tiles[place : place + len(taps)], taps, strict=True)
            for pixel, weight in zip(tile, tap, strict=True)
        )
        for place in range(len(tiles) - len(taps) + 1)
    ]
    assert results == expected


def test_it_is_for_few_channels_and_for_strides_that_leave_nothing_out() -> None:
    assert is_worth_it(3, (7, 7), (2, 2))
    assert is_worth_it(1, (3, 7, 7), (1, 2, 2))
    assert is_worth_it(3, (16, 16), (16, 16))
    assert not is_worth_it(64, (3, 3), (2, 2))
    assert not is_worth_it(3, (3, 3), (1, 1))
    assert not is_worth_it(3, (1, 1), (2, 2))
