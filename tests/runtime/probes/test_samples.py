from __future__ import annotations

from collections import UserDict, namedtuple
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.runtime.probes.samples import count, given


class Tensor:
    """All that is asked of one."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape


class Encoding(UserDict[str, Any]):
    """As transformers' BatchEncoding is made."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self.data[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclass
class Batch:
    name: str
    images: Any
    labels: Any


class Graphs:
    """Graphs joined into one big one: its first dimension counts nodes."""

    num_graphs = 5

    def __init__(self) -> None:
        self.x = Tensor(900, 3)


class OwnShape:
    def shape(self) -> tuple[int, ...]:
        return (3, 4)


class Grumpy:
    @property
    def shape(self) -> int:
        raise RuntimeError("not now")


Pair = namedtuple("Pair", "x y")


@pytest.mark.parametrize(
    ("batch", "samples"),
    [
        (Tensor(32, 3, 8, 8), 32),
        (Tensor(), 0),
        ((Tensor(16, 4), Tensor(16)), 16),
        ([Tensor(16, 4), Tensor(16)], 16),
        (Pair(Tensor(8), Tensor(8)), 8),
        ((Tensor(), Tensor(16, 4)), 16),
        ({"epoch": 3, "x": Tensor(7, 2)}, 7),
        (Encoding({"input_ids": Tensor(9, 128)}), 9),
        ((None, "name", {"deep": [Tensor(6)]}), 6),
        # Pictures of different sizes come as a list; two views of one batch come with their labels.
        (((Tensor(3, 20, 30), Tensor(3, 40, 10)), ({"boxes": Tensor(7, 4)}, {})), 2),
        (([Tensor(16, 3, 8, 8), Tensor(16, 3, 8, 8)], Tensor(16)), 16),
        (Batch("train", Tensor(5, 3), Tensor(5)), 5),
        (SimpleNamespace(inner=SimpleNamespace(x=Tensor(4))), 4),
        (Graphs(), 5),
        # A list of graphs, each an object: not the nodes of the first. Two batches are two batches.
        ([SimpleNamespace(x=Tensor(20, 7)), SimpleNamespace(x=Tensor(9, 7))], 2),
        (([SimpleNamespace(x=Tensor(20, 7))] * 32,), 32),
        ([Graphs(), Graphs()], 5),
        ([{"ids": Tensor(8, 4)}, {"ids": Tensor(8, 4)}], 8),
        ([Encoding({"ids": Tensor(8, 4)}), Encoding({"ids": Tensor(8, 4)})], 8),
        ([Batch("train", Tensor(5, 3), Tensor(5)), Tensor(5)], 5),
        (["a", "b", "c"], 3),
        ((["a", "b", "c"], [1, 2, 3]), 3),
        ([], 0),
        ({}, 0),
        (None, 0),
        ("text", 0),
        (3, 0),
        (object(), 0),
    ],
)
def test_the_first_dimension_of_the_first_tensor(batch: Any, samples: int) -> None:
    assert count(batch) == samples


def test_a_real_tensor(torch: Any) -> None:
    assert count(torch.zeros(12, 3)) == 12
    assert count((torch.tensor(1.0), torch.zeros(12))) == 12


@pytest.mark.parametrize("odd", [OwnShape(), Grumpy(), SimpleNamespace(shape=(None, 3))])
def test_what_only_looks_like_one_is_not_counted(odd: Any) -> None:
    """A probe raises in nobody's script."""
    assert count(odd) == 0
    assert count((odd, Tensor(4))) == 4


def test_a_batch_that_holds_itself_has_an_end() -> None:
    circle: dict[str, Any] = {}
    circle["self"] = circle
    assert count(circle) == 0
    knot = SimpleNamespace()
    knot.left, knot.right = knot, knot
    assert count(knot) == 0
    assert given((knot, circle)) == 0


def test_what_a_model_has_made_is_told_from_what_it_is_given(torch: Any) -> None:
    made = torch.nn.Linear(3, 2)(torch.zeros(8, 3))
    assert given((torch.zeros(8, 3), {})) == 8
    assert given((torch.zeros(8, 3, requires_grad=True),)) == 8
    assert given((torch.zeros(8, 3), made)) == -8
    assert given((torch.zeros(8, 3), (made, made))) == -8
    assert given((torch.zeros(8, 3), {"hidden": made})) == -8
    assert given((torch.zeros(8, 3), made.detach())) == 8
    assert given((Grumpy(), torch.zeros(4))) == 4
