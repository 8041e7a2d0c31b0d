from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hotloop.runtime.owned import augmenting
from hotloop.runtime.owned.batches import Feed


@pytest.fixture
def doubling(owned: Any) -> Any:
    """Doubles its inputs, and notes how many it is given at a time."""

    class Doubling(owned.Plain):  # type: ignore[misc]
        def __init__(self) -> None:
            self.given: list[int] = []

        def augment(self, inputs: Any) -> Any:
            self.given.append(len(inputs))
            return inputs * 2

    return Doubling


@pytest.fixture
def off() -> Iterator[None]:
    augmenting.switch_off()
    yield
    augmenting.switch_on()


def feed(torch: Any, job: Any, data: Any, **more: Any) -> list[Any]:
    job.data = lambda: data
    job.shuffle = False
    return list(Feed(torch, job, 8, **more))


def test_tensors_are_augmented_a_batch_at_a_time(torch: Any, doubling: Any) -> None:
    job, x = doubling(), torch.arange(20).float()[:, None]
    batches = feed(torch, job, (x, torch.zeros(20)))
    assert job.given == [8, 8, 4]
    assert torch.equal(torch.cat([inputs for inputs, _ in batches]), 2 * x)
    assert all((labels == 0).all() for _, labels in batches)


def test_items_are_augmented_one_by_one_where_they_are_loaded(
    torch: Any, doubling: Any, owned: Any
) -> None:
    job, plain = doubling(), owned.Plain()
    batches = feed(torch, job, owned.Squares())
    assert set(job.given) == {1} and len(job.given) == 50
    for (one, label), (other, same) in zip(
        batches, feed(torch, plain, owned.Squares()), strict=True
    ):
        assert torch.equal(one, 2 * other) and torch.equal(label, same)


@pytest.mark.parametrize("kind", ["stream", "batches"])
def test_what_makes_its_own_order_is_augmented_by_the_batch(
    kind: str, torch: Any, doubling: Any, owned: Any
) -> None:
    job = doubling()
    data = owned.Stream() if kind == "stream" else [{"x": torch.ones(8, 4)}] * 2
    first = feed(torch, job, data)[0]
    assert job.given[0] == 8
    if kind == "batches":
        assert (first["x"] == 2).all()


def test_elsewhere_it_is_left_to_whoever_does_it(torch: Any, doubling: Any) -> None:
    job = doubling()
    feed(torch, job, torch.ones(20, 1), augments=False)
    assert job.given == []


def test_without_a_declaration_nothing_happens(owned: Any) -> None:
    assert augmenting.of(owned.Plain()) is None


def test_in_examined_trials_it_is_off(torch: Any, doubling: Any, off: None) -> None:
    job, x = doubling(), torch.ones(8, 1)
    (batch,) = feed(torch, job, x)
    assert torch.equal(batch, x) and job.given == []


def test_workers_augment_too(torch: Any, doubling: Any, owned: Any) -> None:
    job = doubling()
    job.workers = 1
    first, _ = feed(torch, job, owned.Squares())[0]
    assert torch.equal(first[:, 0], 2 * torch.arange(8) / 50)
