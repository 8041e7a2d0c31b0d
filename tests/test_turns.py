from __future__ import annotations

import pytest

from hotloop.turns import Turns

ROUND = [client for client in range(4) for _ in range(5)]


@pytest.mark.parametrize(
    ("keys", "those"),
    [
        ([], set()),
        ([3, 3, 3], {3}),
        ([0, 1] * 9, {1}),
        ([7, 7, 7, 7, 7, 9] * 3, {7}),
        ([0, 0, 1] * 5, {0}),
        (ROUND * 3, {0, 1, 2, 3}),
        ([*ROUND, 0, 0, 0], {0, 1, 2, 3}),
        ([5] * 80 + [6] * 80 + [5] * 20, {5, 6}),
        ([0] * 300 + [1] * 40, {0}),  # a stage of L-BFGS at the end
        ([0] * 300 + [1] * 400, {1}),  # and one of its own at the beginning
        ([0] * 90 + [0, 1] * 50, {0}),  # a critic that learns by itself for a while
        ([0, 0, 0, 0, 0, 0, 1, 1] * 4, {0}),
    ],
    ids=str,
)
def test_whose_steps_count(keys: list[int], those: set[int]) -> None:
    assert Turns(keys).count() == those
