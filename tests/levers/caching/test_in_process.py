from __future__ import annotations

import multiprocessing
import random
from typing import Any

import pytest

from hotloop.levers.cache_dataset import CacheDataset
from tests.levers.test_cache_dataset import Made, passes


@pytest.fixture
def numbers(torch: Any) -> Made:
    return Made(lambda index: (torch.full((3, 2), float(index)), index))


class Drawing:
    """A sampler that draws from the stream that the training draws from, as it is asked."""

    batch_size = 4

    def __iter__(self) -> Any:
        for _ in range(15):
            yield [random.randrange(70) for _ in range(self.batch_size)]

    def __len__(self) -> int:
        return 15


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("prefetch", [None, 3])
def test_random_numbers_are_drawn_as_with_workers(
    jobs: Any, torch: Any, numbers: Made, persistent: bool, prefetch: int | None
) -> None:
    """Between two batches, by the script, and before the first."""

    def drawn() -> list[Any]:
        torch.manual_seed(3)
        random.seed(3)
        loader = torch.utils.data.DataLoader(
            numbers,
            batch_sampler=Drawing(),
            num_workers=2,
            persistent_workers=persistent,
            prefetch_factor=prefetch,
        )
        seen: list[Any] = []
        for _ in range(3):
            batches = iter(loader)
            seen.append((random.random(), torch.rand(1).item()))
            seen.extend((y.tolist(), random.random(), torch.rand(1).item()) for _, y in batches)
        return seen

    without = drawn()
    lever = CacheDataset()
    with jobs.under(lever):
        assert drawn() == without
    assert lever.receipt().evidence["workers_spared"] == 2


@pytest.mark.parametrize("persistent", [False, True])
def test_no_worker_is_started(jobs: Any, torch: Any, numbers: Made, persistent: bool) -> None:
    with jobs.under(CacheDataset()):
        loader = torch.utils.data.DataLoader(
            numbers, batch_size=8, num_workers=2, persistent_workers=persistent
        )
        for _ in range(2):
            for _ in loader:
                assert not multiprocessing.active_children()
        assert loader.num_workers == 2 and "_get_iterator" not in vars(loader)


@pytest.mark.parametrize(
    "options",
    [
        {"collate_fn": list},
        {"timeout": 60},
        {"batch_size": None},
        {"batch_size": 50},  # too many bytes, as items are here
    ],
    ids=str,
)
def test_loaders_that_keep_their_workers(jobs: Any, torch: Any, options: dict[str, Any]) -> None:
    wide = Made(lambda index: torch.full((2**13,), float(index)))
    options = {"num_workers": 1, "batch_size": 8, **options}
    without = passes(torch, wide, **options)
    lever = CacheDataset()
    with jobs.under(lever):
        assert passes(torch, wide, **options) == without
    assert lever.receipt().applied and "workers_spared" not in lever.receipt().evidence


@pytest.mark.parametrize("persistent", [False, True])
def test_a_dataset_that_changes_while_workers_would_have_a_copy(
    jobs: Any, torch: Any, persistent: bool
) -> None:
    """Those that live on never hear of it. Others do, with the next pass."""

    def sums() -> list[float]:
        dataset = Made(int, count=16)
        loader = torch.utils.data.DataLoader(
            dataset, batch_size=4, num_workers=1, persistent_workers=persistent
        )
        found = []
        for factor in (1, 2, 3):
            for number, batch in enumerate(loader):
                found.append(batch.sum().item())
                if number == 1:
                    dataset.make = lambda index, by=factor: -by * index
        return found

    without = sums()
    with jobs.under(CacheDataset()):
        assert sums() == without
