"""Batches of the first passes, noted in this process."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from hotloop.runtime.delivered import MOST, DeliveredProbe
from hotloop.runtime.patches import Patches
from hotloop.runtime.watching import Watch

Noting = Callable[[], AbstractContextManager[DeliveredProbe]]


@pytest.fixture
def noting(torch: Any, unharmed: None) -> Noting:
    """As in a process of its own: another run begins with it."""

    @contextmanager
    def noting() -> Iterator[DeliveredProbe]:
        watch, patches = Watch(torch), Patches()
        probe = DeliveredProbe(torch, watch.inventory.numbers, patches)
        probe.attach(watch.seams)
        watch.driver.attach()
        yield probe
        watch.driver.detach()
        patches.restore()

    return noting


def passes(probe: DeliveredProbe, loader: int = 0) -> list[list[str]]:
    """Checksums of each."""
    seen = [one for one in probe.delivered if one.loader == loader]
    numbers = sorted({one.number for one in seen})
    return [[one.checksum for one in seen if one.number == number] for number in numbers]


def shuffled(torch: Any, samples: int = 20) -> Any:
    data = torch.arange(float(samples))
    return torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)


def test_two_passes_are_noted_and_no_more(torch: Any, noting: Noting) -> None:
    with noting() as probe:
        loader = shuffled(torch)
        for _ in range(4):
            list(loader)
    first, second = passes(probe)
    assert (len(first), len(second)) == (5, 5)
    assert first != second  # it is shuffled anew


def test_a_pass_is_the_same_whatever_was_drawn_before_it(torch: Any, noting: Noting) -> None:
    """As a model does that is compiled, and draws other masks."""
    found = []
    for drawn in (0, 1000):
        with noting() as probe:
            loader = shuffled(torch)
            for _ in range(2):
                list(loader)
                torch.rand(drawn), random.seed(drawn)
        found.append(passes(probe))
    assert found[0] == found[1]


def test_what_an_item_draws_depends_on_the_item(torch: Any, noting: Noting) -> None:
    class Noisy(torch.utils.data.Dataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return 8

        def __getitem__(self, index: int) -> Any:
            return torch.rand(2) + random.random()

    with noting() as probe:
        loader = torch.utils.data.DataLoader(Noisy(), batch_size=4)
        for _ in range(2):
            list(loader)
    first, second = passes(probe)
    assert first == second and len(set(first)) == 2


def test_of_a_long_pass_the_beginning_is_noted(torch: Any, noting: Noting) -> None:
    with noting() as probe:
        list(shuffled(torch, samples=4 * MOST + 40))
    assert [len(one) for one in passes(probe)] == [MOST]


def test_a_pass_is_whole_when_as_much_was_drawn_as_in_the_first(torch: Any, noting: Noting) -> None:
    with noting() as probe:
        loader = shuffled(torch)
        list(loader)
        whole = [probe.is_whole(0, 2) for _ in loader]
        assert whole == [False] * 4 + [True]
        assert probe.is_whole(None, 2)
