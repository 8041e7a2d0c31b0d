"""What an examination pins stays pinned in its process; here it is put back after every test."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hotloop.runtime.exam import randomness


@pytest.fixture
def pin(torch: Any) -> Iterator[Callable[..., None]]:
    """`randomness.pin` in a process where nothing is pinned yet."""
    before = [(owner, name, getattr(owner, name)) for owner, name in _replaced(torch)]
    states = randomness.state(torch)

    def put_back() -> None:
        for owner, name, value in before:
            setattr(owner, name, value)

    def pin(offset: int = 0, eager_random: bool = False) -> None:
        put_back()
        randomness.pin(torch, offset, eager_random)

    yield pin
    put_back()
    randomness.restore(torch, states)


def _replaced(torch: Any) -> Iterator[tuple[Any, str]]:
    numpy = pytest.importorskip("numpy")
    for name in (*randomness.DROPOUTS, "scaled_dot_product_attention"):
        yield torch.nn.functional, name
    for name in ("manual_seed", *randomness.LIKE):
        yield torch, name
    yield torch.jit, "script"
    yield random, "seed"
    yield numpy.random, "seed"
    yield numpy.random, "default_rng"
    yield torch.utils.data._utils.fetch._MapDatasetFetcher, "fetch"
