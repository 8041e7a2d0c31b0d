"""The arithmetic of folding, without graphs."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hotloop.levers.folding import fold, is_foldable, is_worth_it


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
    spread = weights + [0] * made.weights
    assert len(laid) % stride == len(spread) % stride == 0
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
    assert not is_worth_it(0, (3, 3), (2, 2))


def test_weights_are_not_more_than_the_stride_asks_for() -> None:
    assert fold(64, 4, 2, 1).weights == fold(64, 16, 16, 0).weights == 0
    assert fold(224, 7, 2, 3).weights == 1


class TestIsFoldable:
    def test_convolutions_over_pictures_in_strides(self, torch: Any) -> None:
        nn = torch.nn
        assert is_foldable(torch, nn.Conv2d(3, 64, 7, 2, 3))
        assert is_foldable(torch, nn.Conv3d(1, 8, (3, 7, 7), (1, 2, 2)))
        assert not is_foldable(torch, nn.Conv2d(64, 64, 3, 2))
        assert not is_foldable(torch, nn.Conv2d(4, 4, 3, 2, groups=4))
        assert not is_foldable(torch, nn.Linear(3, 3))

    def test_numbers_that_a_script_has_put_there(self, torch: Any) -> None:
        stem = torch.nn.Conv2d(3, 64, 7, 2, 3)
        stem.stride = 1
        assert not is_foldable(torch, stem)
        stem.stride, stem.kernel_size = 2, 7
        assert is_foldable(torch, stem)
        stem.dilation = 2
        assert not is_foldable(torch, stem)

    def test_one_that_does_not_know_its_channels_yet(self, torch: Any) -> None:
        assert not is_foldable(torch, torch.nn.LazyConv2d(8, 7, 2))
