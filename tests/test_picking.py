from __future__ import annotations

import json
import random

import pytest

from hotloop.picking import picked


@pytest.mark.parametrize("seed", range(20))
def test_the_same_as_reading_all_of_it(seed: int) -> None:
    draw = random.Random(seed)
    column = [draw.randrange(10 ** draw.randrange(1, 19)) for _ in range(draw.randrange(1, 200))]
    places = [draw.randrange(len(column)) for _ in range(draw.randrange(1, 50))]
    text = json.dumps(column, separators=(",", ":")).encode()
    assert picked(text, places).tolist() == [column[place] for place in places]


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        "7",
        "[1,-2,3]",
        "[1,2.5,3]",
        "[1,2e3,3]",
        "[1, 2, 3]",
        '[1,"2",3]',
        "[1,null,3]",
        "[[1,2],3]",
        "[1,[2,3]]",
        f"[{10**18},2,3]",
    ],
)
def test_what_is_not_so_simple_is_left_to_others(text: str) -> None:
    """Also where what is wrong stands at another place."""
    assert picked(text.encode(), [0]) is None


@pytest.mark.parametrize("places", [[], [3], [0, 3], [-1]])
def test_places_that_there_are_not(places: list[int]) -> None:
    assert picked(b"[1,2,3]", places) is None
