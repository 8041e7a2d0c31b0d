from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hotloop.runtime import cutting
from hotloop.runtime.cutting import Order, cut_passes
from hotloop.runtime.patches import Patches


@pytest.mark.parametrize(
    ("whole", "kept"),
    [
        ("abcdefg", "abg"),
        ("abcd", "abd"),
        ("abc", "abc"),
        ("ab", "ab"),
        ("a", "a"),
        ("", ""),
    ],
)
def test_the_first_batches_are_followed_by_the_last(whole: str, kept: str) -> None:
    assert "".join(Order(whole, 3)) == kept


def test_every_pass_is_cut_anew() -> None:
    order = Order("abcdefg", 2)
    assert [*order, *order] == ["a", "g", "a", "g"]


def test_its_length_is_that_of_the_whole() -> None:
    assert len(Order("abcdefg", 3)) == 7
    with pytest.raises(TypeError, match=r"generator.* has no len"):
        len(Order((batch for batch in "abc"), 3))


def test_an_endless_one_ends_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: next(moments))
    assert list(Order(itertools.count(), 3)) == [0, 1, 2 + cutting.PATIENCE]


@pytest.fixture
def cut(torch: Any) -> Iterator[Callable[[int], None]]:
    patches = Patches()
    before = vars(torch.utils.data.DataLoader)["_index_sampler"]
    yield lambda batches: cut_passes(torch, patches, batches)
    patches.restore()
    assert vars(torch.utils.data.DataLoader)["_index_sampler"] is before


class TestLoaders:
    @pytest.mark.parametrize("workers", [0, 2])
    def test_a_pass_ends_with_the_short_batch(
        self, workers: int, torch: Any, cut: Callable[[int], None]
    ) -> None:
        cut(3)
        keeping = bool(workers)
        loader = torch.utils.data.DataLoader(
            range(42), batch_size=8, num_workers=workers, persistent_workers=keeping
        )
        for _ in range(2):
            batches = [batch.tolist() for batch in loader]
            assert batches == [list(range(8)), list(range(8, 16)), [40, 41]]
        assert len(loader) == len(iter(loader)) == 6

    def test_shuffled_batches_are_those_of_the_whole_order(
        self, torch: Any, cut: Callable[[int], None]
    ) -> None:
        def batches() -> list[list[int]]:
            generator = torch.Generator().manual_seed(3)
            loader = torch.utils.data.DataLoader(
                range(42), batch_size=8, shuffle=True, generator=generator
            )
            return [batch.tolist() for batch in loader]

        whole = batches()
        cut(3)
        assert batches() == [*whole[:2], whole[-1]]

    def test_so_are_single_samples_and_a_batch_sampler_of_the_scripts_own(
        self, torch: Any, cut: Callable[[int], None]
    ) -> None:
        cut(2)
        single = torch.utils.data.DataLoader(range(5), batch_size=None)
        assert list(single) == [0, 4]
        own = torch.utils.data.DataLoader(range(5), batch_sampler=[[0, 1], [2], [4, 3]])
        assert [batch.tolist() for batch in own] == [[0, 1], [4, 3]]

    def test_an_iterable_dataset_is_left_alone(
        self, torch: Any, cut: Callable[[int], None]
    ) -> None:
        class Stream(torch.utils.data.IterableDataset):  # type: ignore[misc]
            def __iter__(self) -> Any:
                return iter(range(20))

        cut(2)
        assert len(list(torch.utils.data.DataLoader(Stream(), batch_size=4))) == 5
