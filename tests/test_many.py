from __future__ import annotations

import random

import numpy as np
import pytest

from hotloop import many, stats


def values(seed: int) -> list[float]:
    """Steps that are slow at first, and now and then later on."""
    draw = random.Random(seed)
    slow = draw.randrange(0, 20)
    usual = [draw.gauss(1.0, 0.05) * (4.0 if draw.random() < 0.02 else 1.0) for _ in range(200)]
    return [9.0 - at / 10 for at in range(slow)] + usual[: draw.randrange(2, 200)]


@pytest.mark.parametrize("seed", range(40))
def test_the_same_is_said_of_them(seed: int) -> None:
    plain = values(seed)
    ordered = np.sort(np.asarray(plain))
    told, expected = many.summary(ordered), stats.summary(plain)
    assert vars(told) == pytest.approx(vars(expected), rel=1e-9)
    assert many.percentile(ordered, 5) == pytest.approx(stats.percentile(plain, 5))


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("at_least", [0, 3])
def test_the_same_warm_up_is_found(seed: int, at_least: int) -> None:
    plain = values(seed)
    assert many.warm_up(np.asarray(plain), at_least) == stats.warm_up(plain, at_least)


@pytest.mark.parametrize("plain", [[1.0], [1.0, 2.0], [1.0, 1.0, 1.0]])
def test_few_values(plain: list[float]) -> None:
    assert vars(many.summary(np.asarray(plain))) == pytest.approx(vars(stats.summary(plain)))
    assert many.warm_up(np.asarray(plain), 2) == stats.warm_up(plain, 2)


def test_nothing_to_summarise() -> None:
    with pytest.raises(ValueError, match="nothing"):
        many.summary(np.empty(0))
