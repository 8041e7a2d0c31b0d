from __future__ import annotations

from collections import UserDict, namedtuple
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.runtime.exam import checksums
from hotloop.runtime.exam.checksums import DEPTH, LARGE, WORDS, RowSums, checksum

Pair = namedtuple("Pair", "x y")


@pytest.fixture
def of(torch: Any) -> Callable[[Any], str]:
    return lambda value: checksum(torch, value)


def test_the_same_numbers_are_the_same_in_whatever_strides_they_lie(torch: Any, of: Any) -> None:
    batch = torch.randn(2, 3, 4, 4)
    assert of(batch.to(memory_format=torch.channels_last)) == of(batch)
    assert of(torch.stack([batch, batch], -1)[..., 0]) == of(batch)
    assert of(batch.transpose(0, 1).contiguous().transpose(0, 1)) == of(batch)


def test_the_samples_of_a_step_are_the_same_in_whatever_passes(torch: Any) -> None:
    x, y = torch.randn(7, 3, 2), torch.arange(7)

    def summed(*passes: Any) -> list[tuple[str, int, str]]:
        sums = RowSums(torch)
        for part in passes:
            sums.add("model 0", part)
        return sums.taken()

    whole = summed((x, {"y": y}))
    assert summed((x[:3], {"y": y[:3]}), (x[3:], {"y": y[3:]})) == whole
    assert [(stream, rows) for stream, rows, _ in whole] == [("model 0", 7), ("model 0, part 2", 7)]
    assert summed((x[3:], {"y": y[3:]}), (x[:3], {"y": y[:3]})) != whole  # another order
    assert summed((x.double(), {"y": y}))[0] != whole[0]
    assert summed(x.mT)[0] != whole[0]


def test_steps_are_summed_up_one_by_one(torch: Any) -> None:
    sums = RowSums(torch)
    sums.add("model 0", torch.ones(2))
    first = sums.taken()
    sums.add("model 0", torch.ones(2))
    assert sums.taken() == first
    assert sums.taken() == []


def test_whether_it_learns_is_no_part_of_it(torch: Any, of: Any) -> None:
    x = torch.randn(4)
    assert of(x.clone().requires_grad_()) == of(x)
    assert of(torch.nn.Parameter(x)) == of(x)


def test_one_changed_element_shows(torch: Any, of: Any) -> None:
    x = torch.randn(1000)
    other = x.clone()
    other[500] = torch.nextafter(x[500], torch.tensor(9.0))
    assert of(other) != of(x)


def test_samples_in_another_order_show(torch: Any, of: Any) -> None:
    x = torch.randn(8, 4)
    assert of(x.flip(0)) != of(x)


def test_another_type_or_shape_shows(torch: Any, of: Any) -> None:
    zeros = torch.zeros(4, dtype=torch.int32)
    assert len({of(zeros), of(zeros.float()), of(zeros.view(2, 2)), of(zeros[:3])}) == 4


def test_what_is_conjugated_or_negated_lazily_counts_as_it_reads(torch: Any, of: Any) -> None:
    x = torch.randn(4, dtype=torch.complex64)
    assert of(x.conj()) != of(x)
    assert of(x.conj()) == of(x.conj_physical())
    assert of(x.conj().imag) == of(-x.imag)


def test_nothing_and_an_empty_tensor_have_one_too(torch: Any, of: Any) -> None:
    assert len({of(None), of(torch.empty(0)), of(torch.empty(0, 3))}) == 3


def test_sparse_tensors_count_by_their_numbers(torch: Any, of: Any) -> None:
    x = torch.eye(4)
    assert of(x.to_sparse()) == of(x) == of(x.to_sparse_csr())
    assert of((2 * x).to_sparse()) != of(x.to_sparse())


def test_nested_tensors_count_part_by_part(torch: Any, of: Any) -> None:
    parts = [torch.ones(2), torch.ones(3)]
    nested = of(torch.nested.nested_tensor(parts))
    assert nested == of(torch.nested.nested_tensor(parts))
    assert nested != of(torch.nested.nested_tensor([parts[0], 2 * parts[1]]))


def test_every_leaf_of_a_nested_batch_counts(torch: Any, of: Any) -> None:
    def batch(deep: float = 1.0, name: str = "one", none: Any = None) -> Any:
        return {"x": [torch.ones(2), (torch.tensor(deep), none)], "names": [name]}

    different = [batch(), batch(deep=2.0), batch(name="two"), batch(none=0)]
    assert len({of(one) for one in different}) == 4
    assert of(batch()) == of(batch())


def test_names_count_but_not_their_order(torch: Any, of: Any) -> None:
    one, two = torch.ones(2), torch.zeros(2)
    assert of({"a": one, "b": two}) == of({"b": two, "a": one}) != of({"a": two, "b": one})


def test_a_batch_of_a_class_of_its_own_counts_by_its_fields(torch: Any, of: Any) -> None:
    x = torch.ones(2)
    kinds: list[Callable[..., Any]] = [SimpleNamespace, Pair, UserDict]
    for kind in kinds:
        assert of(kind(x=x, y=0)) == of(kind(x=x.clone(), y=0)) != of(kind(x=2 * x, y=0))


def test_pinning_may_turn_a_tuple_into_a_list(torch: Any, of: Any) -> None:
    assert of((torch.ones(2), 1)) == of([torch.ones(2), 1])


def test_where_one_part_ends_and_the_next_begins_counts(of: Any) -> None:
    assert of([1, 11]) != of([11, 1])
    assert of([[1], 2]) != of([[1, 2]])


def test_arrays_of_numpy_count_by_their_numbers(of: Any) -> None:
    numpy = pytest.importorskip("numpy")
    x = numpy.arange(6.0).reshape(2, 3)
    assert of(x) == of(numpy.asfortranarray(x))
    assert len({of(x), of(x + 1), of(x.astype("float32")), of(x.ravel())}) == 4


def test_what_holds_itself_comes_to_an_end(of: Any) -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert of(endless)
    deep: Any = 1
    for _ in range(DEPTH + 2):
        deep = [deep]
    assert of(deep) == of(deep)


class TestLarge:
    """Those that are added up where they lie."""

    def test_every_element_counts_and_its_place(self, torch: Any, of: Any) -> None:
        x = torch.randn(4, 3, WORDS)
        known = {of(x), of(x.flip(0)), of(x.flip(2)), of(x.view(3, 4, -1)), of(x.view(torch.int32))}
        for place in (0, WORDS - 1, WORDS, x.numel() // 2, x.numel() - 1):
            other = x.clone()
            other.view(-1)[place] += 1e-3
            known.add(of(other))
        for one, two in ((0, 1), (5, 5 + WORDS), (7, 7 + 3 * WORDS)):
            other = x.clone().view(-1)
            other[[one, two]] = other[[two, one]]
            known.add(of(other.view_as(x)))
        assert len(known) == 13

    @pytest.mark.parametrize("kind", ["float32", "bool", "bfloat16", "uint8"])
    def test_numbers_with_few_bits_are_told_apart(self, kind: str, torch: Any, of: Any) -> None:
        """A mask of which one pixel is elsewhere, in all places of a few rows."""
        mask = torch.zeros(1, 40_000).to(getattr(torch, kind))
        seen = set()
        for place in range(0, 40_000, 13):
            mask[0, place] = 1
            seen.add(of(mask))
            mask[0, place] = 0
        assert len(seen) == len(range(0, 40_000, 13))

    def test_samples_in_each_others_places_show(self, torch: Any, of: Any) -> None:
        labels = torch.nn.functional.one_hot(torch.arange(300) % 70, 1100).float()
        changed = [of(labels.roll(by, 0)) for by in range(70)]
        assert len(set(changed)) == 70

    @pytest.mark.parametrize("kind", ["uint8", "bool", "float16", "int64", "complex64", "float64"])
    @pytest.mark.parametrize("size", [LARGE, LARGE + 3])
    def test_of_every_type_also_the_last_bytes(
        self, kind: str, size: int, torch: Any, of: Any
    ) -> None:
        x = torch.randint(0, 2, (3, size)).to(getattr(torch, kind))
        other = x.clone()
        other[-1, -1] = 1 - int(x[-1, -1].real)
        assert of(other) != of(x) == of(x.clone())

    @pytest.mark.parametrize("size", [LARGE, LARGE + 1])
    def test_wherever_in_memory_it_begins(self, size: int, torch: Any, of: Any) -> None:
        x = torch.randint(0, 256, (5 * size + 3,), dtype=torch.uint8)
        for begin in range(4):
            part = x[begin : begin + 4 * size].view(4, size)
            assert of(part) == of(part.clone())

    def test_in_whatever_strides_and_of_whatever_kind(self, torch: Any, of: Any) -> None:
        class Kind(torch.Tensor):  # type: ignore[misc]
            pass

        x = torch.randn(4, 8, 32, 32, dtype=torch.complex64)
        assert of(x.to(memory_format=torch.channels_last)) == of(x)
        assert of(x.as_subclass(Kind)) == of(x)
        assert of(x.conj()) == of(x.conj_physical()) != of(x)

    def test_the_samples_of_a_step_are_the_same_in_whatever_passes(self, torch: Any) -> None:
        x = torch.randint(0, 256, (7, LARGE + 1), dtype=torch.uint8)

        def summed(*parts: Any) -> list[tuple[str, int, str]]:
            sums = RowSums(torch)
            for part in parts:
                sums.add("model 0", part)
            return sums.taken()

        assert summed(x[:3], x[3:]) == summed(x) == summed(*x.split(1))
        assert summed(x[3:], x[:3]) != summed(x)

    def test_those_without_plain_numbers_too(self, torch: Any, of: Any) -> None:
        def quantised(x: Any) -> Any:
            return torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)

        x = torch.randn(2, LARGE)
        assert of(quantised(x)) == of(quantised(x)) != of(quantised(-x))
        assert of(torch.empty(0, LARGE)) != of(torch.empty(2, 0))

    def test_those_that_only_hold_others(self, torch: Any, of: Any) -> None:
        from torch.testing._internal.two_tensor import TwoTensor

        x, y = torch.randn(2, LARGE), torch.randn(2, LARGE)
        assert of(TwoTensor(x, y)) == of(TwoTensor(x, y)) != of(TwoTensor(x, x))
        assert of(TwoTensor(x[:, :3], y[:, :3])) != of(TwoTensor(x[:, :3], x[:, :3]))

    def test_where_a_device_has_no_room_the_host_does_it(
        self, torch: Any, of: Any, monkeypatch: Any
    ) -> None:
        x = torch.randn(2, LARGE)
        expected, sums, left = of(x), checksums._sums, [torch.OutOfMemoryError()]

        def full(*args: Any) -> Any:
            if left:
                raise left.pop()
            return sums(*args)

        monkeypatch.setattr(checksums, "_sums", full)
        assert of(x) == expected

    @pytest.mark.gpu
    def test_a_device_says_what_the_host_says(self, torch: Any, of: Any) -> None:
        if not torch.cuda.is_available():
            pytest.skip("no GPU")
        for x in (torch.randn(300, LARGE), torch.randint(0, 256, (5, LARGE + 7)).byte()):
            assert of(x.cuda()) == of(x)
