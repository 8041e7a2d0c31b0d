from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.diagnose.base import Case
from hotloop.diagnose.rules.broken_loss import broken_loss
from hotloop.measurement import Losses
from tests.diagnose.making import case


def losing(*values: float | None) -> Case:
    made = case()
    losses = Losses(list(range(len(values))), list(values), values.count(None))
    return replace(made, measurement=replace(made.measurement, losses=losses))


def test_a_loss_that_is_lost_for_good() -> None:
    found = broken_loss(losing(2.0, 9e12, *[None] * 40))
    assert found is not None and not found.is_limit
    assert found.evidence == ("none of the last 40 losses is finite, of 42",)


@pytest.mark.parametrize(
    "values", [(), (2.0, 1.0), (None, None, 2.0, 1.0), (2.0, None, None), (*[None] * 9, 1.0)]
)
def test_one_that_comes_back_is_none(values: tuple[float | None, ...]) -> None:
    assert broken_loss(losing(*values)) is None
