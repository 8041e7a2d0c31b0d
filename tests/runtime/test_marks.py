from __future__ import annotations

from typing import Any

import pytest

from hotloop.runtime.marks import Mark, mark, matched, shapes

A, B, C = ("[(2,)]", "[1.0]"), ("[(2,)]", "[2.0]"), ("[(3,)]", "[3.0]")
LATER: Mark = ("[(2,)]", "[1.5]")
"""What A trains, some steps on."""


@pytest.mark.parametrize(
    ("here", "there", "found"),
    [
        ((A, B, C), (A, B, C), (0, 1, 2)),
        ((A, B, C), (C, A, B), (1, 2, 0)),
        ((A, A, C), (C, A, A), (1, 2, 0)),
        ((LATER, B), (A, B), (0, 1)),
        ((LATER, B), (B, A), (1, 0)),
        ((A, B), (B, C), (1, 0)),
        ((A, B), (), (0, 1)),
        ((A, B, C), (B,), (1, 0, 2)),
        ((A,), (C, B), (1,)),
    ],
)
def test_which_is_which(
    here: tuple[Mark, ...], there: tuple[Mark, ...], found: tuple[int, ...]
) -> None:
    assert matched(dict(enumerate(here)), dict(enumerate(there))) == dict(enumerate(found))


def test_a_mark_tells_the_parameters_that_are_trained(torch: Any) -> None:
    torch.manual_seed(0)
    one, other, wide = (torch.nn.Linear(4, out) for out in (3, 3, 5))

    def of(layer: Any) -> Mark:
        return mark(torch.optim.SGD(layer.parameters(), lr=0.1))

    assert of(one) == of(one)
    assert of(one) != of(other)
    assert of(one)[0] == of(other)[0] != of(wide)[0]
    assert of(one)[0] == shapes(torch.optim.Adam(one.parameters()))
