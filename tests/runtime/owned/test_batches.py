from __future__ import annotations

from typing import Any

import pytest

from hotloop.errors import JobInvalid
from hotloop.runtime.owned.batches import Feed, TensorData


def feed(torch: Any, owned: Any, data: Any, **settings: Any) -> Feed:
    job = owned.Plain()
    job.data = data if callable(data) else lambda: data
    for name, value in settings.items():
        setattr(job, name, value)
    return Feed(torch, job, job.batch_size)


def firsts(batches: Any) -> list[list[float]]:
    return [batch[0][:, 0].tolist() for batch in batches]


def flat(batches: list[list[float]]) -> list[float]:
    return [number for batch in batches for number in batch]


def numbered(torch: Any, samples: int = 50) -> Any:
    return torch.arange(samples).float()[:, None], torch.zeros(samples)


def test_tensors_in_the_order_they_are_in(torch: Any, owned: Any) -> None:
    found = firsts(feed(torch, owned, numbered(torch), shuffle=False))
    assert [len(batch) for batch in found] == [8, 8, 8, 8, 8, 8, 2]
    assert flat(found) == list(range(50))


def test_the_order_depends_on_the_seed_alone(torch: Any, owned: Any) -> None:
    def drawn(seed: int) -> list[list[float]]:
        made = feed(torch, owned, numbered(torch), seed=seed)
        torch.randn(seed + 3)  # whatever else the job draws
        return firsts(made) + firsts(made)

    once = drawn(1)
    assert drawn(1) == once
    assert drawn(2) != once
    assert once[:7] != once[7:]  # another order in every epoch
    assert sorted(flat(once[:7])) == list(range(50))


@pytest.mark.parametrize("kind", ["tensors", "dataset"])
def test_workers_change_nothing(kind: str, torch: Any, owned: Any) -> None:
    data = numbered(torch) if kind == "tensors" else owned.Squares()
    alone, helped = (feed(torch, owned, data, workers=workers) for workers in (0, 1))
    assert [firsts(alone), firsts(alone)] == [firsts(helped), firsts(helped)]


@pytest.mark.parametrize("kind", ["tensors", "dataset"])
def test_the_short_batch_can_be_left_out(kind: str, torch: Any, owned: Any) -> None:
    data = numbered(torch) if kind == "tensors" else owned.Squares()
    assert [len(batch) for batch in firsts(feed(torch, owned, data, drop_last=True))] == [8] * 6


def test_a_dict_of_tensors(torch: Any, owned: Any) -> None:
    first = next(iter(feed(torch, owned, {"x": torch.randn(20, 3)})))
    assert {name: tuple(value.shape) for name, value in first.items()} == {"x": (8, 3)}


def test_a_single_tensor(torch: Any, owned: Any) -> None:
    assert next(iter(feed(torch, owned, torch.randn(20, 3)))).shape == (8, 3)


def test_a_whole_batch_is_one_indexing(torch: Any) -> None:
    data = TensorData((torch.arange(9), torch.arange(9) * 2), 9)
    x, y = data.__getitems__(torch.tensor([3, 1]))
    assert (x.tolist(), y.tolist()) == ([3, 1], [6, 2])
    assert [one.item() for one in data[4]] == [4, 8]


def test_a_dataset_is_shuffled_and_batched(torch: Any, owned: Any) -> None:
    batches = firsts(feed(torch, owned, owned.Squares()))
    assert [len(batch) for batch in batches] == [8] * 6 + [2]
    assert flat(batches) != sorted(flat(batches))


def test_a_dataset_may_put_its_samples_together_itself(torch: Any, owned: Any) -> None:
    class Own(owned.Squares):  # type: ignore[misc]
        def collate(self, samples: Any) -> Any:
            return [int(label) for _, label in samples]

    assert sorted(number for batch in feed(torch, owned, Own()) for number in batch) == [*range(50)]


def test_what_can_only_be_iterated_keeps_its_order(torch: Any, owned: Any) -> None:
    batches = firsts(feed(torch, owned, owned.Stream()))
    assert flat(batches) == sorted(flat(batches))


def test_an_iterable_of_batches_is_left_alone(torch: Any, owned: Any) -> None:
    made = [numbered(torch, 8), numbered(torch, 8)]
    found = feed(torch, owned, made)
    assert list(found) == made == list(found)
    assert not found.resizable


def test_a_generator_is_asked_for_again_in_every_epoch(torch: Any, owned: Any) -> None:
    asked = []

    def data() -> Any:
        asked.append(1)
        return (batch for batch in [1, 2, 3])

    found = feed(torch, owned, data)
    assert [list(found), list(found), len(asked)] == [[1, 2, 3], [1, 2, 3], 2]


@pytest.mark.parametrize("wrong", [None, 3, "data"])
def test_what_is_no_data(wrong: Any, torch: Any, owned: Any) -> None:
    with pytest.raises(JobInvalid, match=r"Plain\.data\(\) must not return"):
        feed(torch, owned, wrong)


def test_tensors_that_do_not_belong_together(torch: Any, owned: Any) -> None:
    with pytest.raises(JobInvalid, match="different lengths: 5 and 6"):
        feed(torch, owned, (torch.ones(5, 1), torch.ones(6, 1)))
