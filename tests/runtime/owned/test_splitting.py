from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any

import pytest

from hotloop.errors import JobInvalid
from hotloop.runtime.owned.splitting import moved, parts

Pair = namedtuple("Pair", "x y")


def lengths(torch: Any, batch: Any, rows: int, size: int) -> list[int]:
    return [count for _, count in parts(torch, batch, rows, size)]


@pytest.mark.parametrize(
    ("rows", "size", "counts"),
    [(8, 8, [8]), (8, 9, [8]), (8, 4, [4, 4]), (8, 3, [3, 3, 2]), (1, 1, [1]), (3, 1, [1, 1, 1])],
)
def test_counts_add_up(rows: int, size: int, counts: list[int], torch: Any) -> None:
    x = torch.randn(rows, 2)
    found = list(parts(torch, x, rows, size))
    assert [count for _, count in found] == [len(part) for part, _ in found] == counts
    assert torch.equal(torch.cat([part for part, _ in found]), x)


def test_parts_are_views(torch: Any) -> None:
    x = torch.randn(6, 2)
    (first, _), *_ = parts(torch, x, 6, 2)
    assert first.data_ptr() == x.data_ptr()


@pytest.mark.parametrize("learned", [False, True])
def test_parts_may_be_changed_in_place(torch: Any, learned: bool) -> None:
    """As a loss may do that adds learned noise to its inputs."""
    x, noise = torch.zeros(4, 2), torch.ones(2, requires_grad=True)
    if learned:
        x = x.requires_grad_() * 1
    for part, _ in parts(torch, x, 4, 2):
        part += noise
        part.sum().backward(retain_graph=learned)
    assert noise.grad is not None


@pytest.mark.parametrize(
    "put_together",
    [
        lambda x, y: (x, y),
        lambda x, y: [x, y],
        lambda x, y: Pair(x, y),
        lambda x, y: {"x": x, "y": y},
        lambda x, y: OrderedDict(x=x, y=y),
        lambda x, y: (x, {"deep": [y]}),
    ],
)
def test_whatever_a_batch_is_made_of(put_together: Any, torch: Any) -> None:
    batch = put_together(torch.arange(5), torch.arange(5) * 2)
    found = [part for part, _ in parts(torch, batch, 5, 2)]
    assert all(type(part) is type(batch) for part in found)
    assert str(found[1]) == str(put_together(torch.arange(2, 4), torch.arange(2, 4) * 2))


def test_lists_of_one_entry_a_sample_are_cut_and_the_rest_is_handed_on(torch: Any) -> None:
    batch = {"x": torch.arange(3), "names": ["a", "b", "c"], "scale": 0.5, "table": torch.ones(9)}
    (first, _), (last, _) = parts(torch, batch, 3, 2)
    assert (first["names"], last["names"]) == (["a", "b"], ["c"])
    assert first["scale"] == 0.5
    assert len(last["table"]) == 9


def test_two_tensors_of_two_samples_are_two_columns(torch: Any) -> None:
    batch = torch.ones(2, 3), torch.zeros(2)
    (x, y), count = next(parts(torch, batch, 2, 1))
    assert (x.shape, y.shape, count) == ((1, 3), (1,), 1)


def test_what_cannot_be_taken_apart_is_said(torch: Any) -> None:
    with pytest.raises(JobInvalid, match="of type object cannot be taken apart"):
        list(parts(torch, object(), 4, 2))


def test_everything_is_moved(torch: Any) -> None:
    found = moved({"x": (torch.ones(2), "word", 3)}, torch.device("meta"))
    assert found["x"][0].device.type == "meta"
    assert found["x"][1:] == ("word", 3)
