from __future__ import annotations

import pickle
from typing import Any, NamedTuple

import pytest

from hotloop.levers.caching.cache import Cache
from hotloop.levers.caching.filling import Filled
from hotloop.levers.caching.serving import Batches
from hotloop.levers.caching.shelf import Packer, Shelf
from tests.levers.test_cache_dataset import plain

CHUNK = 8


class Named(NamedTuple):
    x: Any
    y: int


class Items:
    """A dataset that nobody asks for an item."""

    def __getitem__(self, number: int) -> Any:
        raise AssertionError(f"item {number} is kept")


def shelf_of(torch: Any, items: list[Any], last_first: bool = False) -> Shelf:
    """As it comes from processes that draw a chunk each, in whichever order."""
    shelf, packer = Shelf(torch, len(items)), Packer(torch)
    firsts = range(0, len(items), CHUNK)
    for first in reversed(firsts) if last_first else firsts:
        message, buffer = packer.packed(items[first : first + CHUNK])
        put = shelf.put(first, pickle.loads(pickle.dumps(message)), buffer)
        assert put == len(items[first : first + CHUNK])
    return shelf


def alike(torch: Any, numpy: Any, number: int) -> Any:
    return {
        "pixels": torch.arange(24.0).view(2, 4, 3) + number,
        "half": torch.full((5,), number / 7).bfloat16(),
        "is_even": torch.tensor(number % 2 == 0),
        "waves": torch.full((2,), complex(number, -1)),
        "array": numpy.arange(6, dtype=numpy.uint16).reshape(2, 3) + number,
        "scalar": numpy.array(number, dtype=numpy.int16),
        "number": numpy.float32(number / 3),
        "truth": numpy.bool_(number % 3 == 0),
        "label": number,
        "weight": number / 3,
        "is_last": number == 19,
        "parts": (number, [torch.ones(2), "the same"], Named(torch.ones(1), number)),
    }


@pytest.fixture
def items(torch: Any) -> list[Any]:
    numpy = pytest.importorskip("numpy")
    return [alike(torch, numpy, number) for number in range(20)]


@pytest.mark.parametrize("last_first", [False, True])
def test_items_that_are_alike_lie_in_columns(
    torch: Any, items: list[Any], last_first: bool
) -> None:
    shelf = shelf_of(torch, items, last_first)
    assert shelf.columns is not None
    for number, item in enumerate(items):
        assert plain(torch, shelf.item(number)) == plain(torch, item)


def test_a_batch_is_what_torch_makes_of_them(torch: Any, items: list[Any]) -> None:
    dataset = Items()
    for item in items:
        item["parts"][1].pop()  # of which torch makes no batch but a list of texts
    filled = Filled(shelf_of(torch, items))
    batches = Batches(torch, dataset, Cache(torch, dataset, filled), is_final=False)
    for numbers in ([3, 1, 19, 3], [5, 0, 2], [17]):
        expected = torch.utils.data.default_collate([items[number] for number in numbers])
        found = batches.collated(batches.__getitems__(numbers))
        assert plain(torch, found) == plain(torch, expected)
        found["pixels"].zero_()
    assert batches._is_read_at_once


def test_texts_are_left_to_torch(torch: Any, items: list[Any]) -> None:
    dataset = Items()
    batches = Batches(torch, dataset, Cache(torch, dataset, Filled(shelf_of(torch, items))), True)
    for _ in range(2):
        assert batches.collated([1, 2])["parts"][1][1] == ("the same", "the same")
    assert batches._is_read_at_once is False


def test_many_bytes_are_read_by_threads(torch: Any) -> None:
    items = [torch.full((2**17,), float(number)) for number in range(10)]
    shelf = shelf_of(torch, items)
    assert torch.equal(shelf.batch([7, 0, 9, 7]), torch.stack([items[n] for n in (7, 0, 9, 7)]))


@pytest.mark.parametrize("size", [2, 2**18])
@pytest.mark.parametrize("are_alike", [True, False])
def test_it_lies_on_the_host_wherever_tensors_are_made(
    torch: Any, size: int, are_alike: bool
) -> None:
    """A script may have set a GPU as the device of all that it makes."""
    items = [(torch.full((size,), float(number)), number) for number in range(10)]
    if not are_alike:
        items[3] = (torch.zeros(size + 1), 3)
    with torch.device("meta"):
        shelf = shelf_of(torch, items)
        batch = shelf.batch([7, 0, 9, 7])
    for number, (x, label) in enumerate(items):
        assert torch.equal(shelf.item(number)[0], x) and shelf.item(number)[1] == label
    if are_alike:
        assert torch.equal(batch[0], torch.stack([items[n][0] for n in (7, 0, 9, 7)]))


def test_batches_on_another_device_are_not_the_same(torch: Any) -> None:
    """torch makes numbers into tensors on that."""
    shelf = shelf_of(torch, list(range(10)))
    dataset = Items()
    batches = Batches(torch, dataset, Cache(torch, dataset, Filled(shelf)), is_final=True)
    with torch.device("meta"):
        assert [batches.collated([1, 2]).device.type for _ in range(2)] == ["meta", "meta"]


def test_a_dimension_of_one_keeps_its_stride(torch: Any) -> None:
    """It decides on the order of what a script makes of it."""
    items = [torch.randn(8, 8, 1).permute(2, 0, 1) for _ in range(10)]
    shelf = shelf_of(torch, items)
    assert shelf.columns is not None
    assert shelf.item(4).stride() == items[4].stride() == (1, 8, 1)


@pytest.mark.parametrize("at", [0, 3, 8, 19])
def test_one_that_differs_makes_objects_of_all(torch: Any, items: list[Any], at: int) -> None:
    others: list[Any] = [
        {**items[at], "pixels": torch.zeros(2, 4, 4)},
        {**items[at], "pixels": torch.zeros(2, 4, 3).double()},
        {**items[at], "pixels": torch.zeros(4, 3, 2).permute(2, 0, 1)},
        {**items[at], "label": float(at)},
        {**items[at], "label": 2**70},
        {**items[at], "more": None},
        {**items[at], "parts": None},
        {**items[at], "pixels": torch.zeros(0)},
    ]
    for other in others:
        mixed = [*items[:at], other, *items[at + 1 :]]
        for last_first in (False, True):
            shelf = shelf_of(torch, mixed, last_first)
            assert shelf.columns is None and shelf.batch([0, 1]) is None
            for number, item in enumerate(mixed):
                assert plain(torch, shelf.item(number)) == plain(torch, item)


def test_what_is_handed_out_may_be_changed(torch: Any, items: list[Any]) -> None:
    shelf = shelf_of(torch, items)
    for _ in range(2):
        item = shelf.item(4)
        assert item["pixels"][0, 0, 0] == 4 and item["array"][0, 0] == 4 and item["scalar"] == 4
        for value in (item["pixels"], item["array"], item["scalar"]):
            value[...] = -1 if value is item["pixels"] else 0


def test_what_it_is_asked_for(torch: Any) -> None:
    numpy = pytest.importorskip("numpy")
    shelf = shelf_of(torch, list(range(20)))
    assert 0 in shelf and 19 in shelf and numpy.int64(7) in shelf
    for other in (-1, 20, True, 3.0, torch.tensor(3), numpy.int32(3), "3", None):
        assert other not in shelf
