from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hotloop.inspection import LoaderLook
from hotloop.runtime.look import loading
from hotloop.runtime.look.loading import LoaderProbe
from hotloop.runtime.patches import Patches
from hotloop.runtime.watching import Watch


@pytest.fixture
def probe(torch: Any, tmp_path: Path) -> Iterator[LoaderProbe]:
    patches = Patches()
    probe = LoaderProbe(torch, tmp_path)
    probe.attach(patches)
    yield probe
    patches.restore()


class Numbers:
    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> int:
        time.sleep(0.002)
        if index == 3:
            time.sleep(0.05)
        return index


class Lists(Numbers):
    def __getitems__(self, indices: list[int]) -> list[int]:
        return indices


def drawn(torch: Any, dataset: Any, **options: Any) -> list[Any]:
    loader = torch.utils.data.DataLoader(dataset, **{"batch_size": 4, **options})
    return [batch.tolist() for batch in loader]


def test_items_and_batches_of_the_jobs_own_process(torch: Any, probe: LoaderProbe) -> None:
    assert drawn(torch, Numbers()) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    (look,) = probe.looks()
    assert look.worker is None
    assert len(look.item_seconds) == 10
    assert look.item_seconds.index(max(look.item_seconds)) == 3
    assert look.batch_items == [4, 4, 2]
    assert len(look.collate_seconds) == 3
    assert sum(look.item_cpu_seconds) < sum(look.item_seconds) / 2  # it slept
    pairs = zip(look.item_queued_seconds, look.item_cpu_seconds, strict=True)
    assert all(0 <= queued <= occupied for queued, occupied in pairs)
    assert len(look.collate_queued_seconds) == 3
    assert all(queued >= 0 for queued in look.collate_queued_seconds)


class Augmented(Numbers):
    def __getitem__(self, index: int) -> int:
        return index if random.random() < 2 else 0


@pytest.mark.parametrize("workers", [0, 1])
def test_items_that_draw_random_numbers(torch: Any, probe: LoaderProbe, workers: int) -> None:
    drawn(torch, Numbers(), num_workers=workers)
    assert not any(any(look.draws) for look in probe.looks())
    drawn(torch, Augmented(), num_workers=workers, shuffle=True)
    if not workers:  # a worker tells only now and then
        assert probe.looks()[0].draws == [False]
        probe.looks()[0].draws.clear()
        drawn(torch, Augmented())
        assert probe.looks()[0].draws == [True]


def test_a_dataset_that_hands_out_batches(torch: Any, probe: LoaderProbe) -> None:
    assert drawn(torch, Lists()) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(probe.looks()[0].item_seconds) == 3


def test_a_loader_that_makes_no_batches(torch: Any, probe: LoaderProbe) -> None:
    assert drawn(torch, torch.arange(3), batch_size=None) == [0, 1, 2]
    assert probe.looks()[0].batch_items == [1, 1, 1]


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("batch_size", [3, 5, None])
def test_an_iterable_gives_what_it_would_have_given(
    torch: Any, tmp_path: Path, drop_last: bool, batch_size: int | None
) -> None:
    class Stream(torch.utils.data.IterableDataset):  # type: ignore[misc]
        def __iter__(self) -> Iterator[int]:
            return iter(range(10))

    options = {"batch_size": batch_size, "drop_last": drop_last and batch_size is not None}
    plain = [
        batch.tolist() if hasattr(batch, "tolist") else batch
        for batch in torch.utils.data.DataLoader(Stream(), **options)
    ]
    patches = Patches()
    LoaderProbe(torch, tmp_path).attach(patches)
    watched = [
        batch.tolist() if hasattr(batch, "tolist") else batch
        for batch in torch.utils.data.DataLoader(Stream(), **options)
    ]
    patches.restore()
    assert watched == plain


def test_workers_leave_what_they_saw(
    torch: Any, probe: LoaderProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "EVERY_SECONDS", 0.0)
    monkeypatch.setattr(loading, "MOST_OF_THE_TIME", 1e6)
    assert len(drawn(torch, Numbers(), num_workers=2)) == 3
    looks = sorted(probe.looks(), key=lambda look: look.worker or 0)
    assert [look.worker for look in looks] == [0, 1]
    assert sorted(count for look in looks for count in look.batch_items) == [2, 4, 4]
    lines = {frame.source for look in looks for frame in look.samples.frames if frame.is_users}
    assert "time.sleep(0.05)" in lines


@pytest.fixture
def watch(torch: Any, unharmed: None, probe: LoaderProbe) -> Iterator[Watch]:
    watch = Watch(torch)
    probe.tell_apart(watch.seams, watch.inventory.numbers["loader"].of)
    watch.driver.attach()
    yield watch
    watch.driver.detach()


@pytest.mark.parametrize("workers", [0, 2])
def test_whose_batches_they_are_is_known(
    workers: int,
    torch: Any,
    probe: LoaderProbe,
    watch: Watch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loading, "EVERY_SECONDS", 0.0)
    monkeypatch.setattr(loading, "MOST_OF_THE_TIME", 1e6)
    make = torch.utils.data.DataLoader
    training = make(torch.arange(8), batch_size=4, num_workers=workers)
    tested = make(torch.arange(6), batch_size=3, num_workers=workers)
    for _ in range(2):
        assert len(list(training)) + len(list(tested)) == 4
    number_of = watch.inventory.numbers["loader"].of
    for loader, size in ((training, 4), (tested, 3)):
        looks = [look for look in probe.looks() if look.loader == number_of(loader)]
        assert [items for look in looks for items in look.batch_items] == [size] * 4


def test_a_file_cut_off_is_no_look(probe: LoaderProbe, tmp_path: Path) -> None:
    (tmp_path / "loader-1.json").write_text('{"worker": 0, "item_sec')
    assert probe.looks() == []


def test_a_failing_item_fails_as_it_would(torch: Any, probe: LoaderProbe) -> None:
    with pytest.raises(IndexError):
        drawn(torch, [1, 2, 3], sampler=[0, 7])


def test_a_look_can_be_read_back(probe: LoaderProbe, tmp_path: Path) -> None:
    from hotloop.runtime.look.sampler import Sampler

    probe._look.item_seconds.append(0.5)
    probe._leave(Sampler())
    assert loading._read(next(tmp_path.glob("loader-*.json"))) == LoaderLook(None, [0.5])


class Held(Numbers):
    """One is made by a worker that stands still meanwhile, as when a step is seen without it."""

    def __getitem__(self, index: int) -> int:
        if index == 5:
            os.system(f"(sleep 0.6; kill -CONT {os.getpid()}) & kill -STOP {os.getpid()}")
        return super().__getitem__(index)


def test_a_worker_that_is_held_makes_no_slow_item(torch: Any, probe: LoaderProbe) -> None:
    assert len(drawn(torch, Held(), num_workers=1, batch_size=10)) == 1
    (look,) = probe.looks()
    assert look.worker == 0 and len(look.item_seconds) == 10
    assert look.item_seconds[5] < 0.3
