from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hotloop.levers.cache_dataset import CacheDataset
from hotloop.levers.caching import host_memory
from hotloop.levers.loader_workers import LoaderWorkers
from hotloop.levers.stage_data import StageData
from hotloop.levers.staging import copying, folders
from tests import builders

COUNT = 40


class Files:
    """A map-style dataset by duck typing, whose items are read from files and augmented."""

    def __init__(self, torch: Any, folder: Path) -> None:
        self.torch = torch
        self.paths = [str(folder / f"{number}.bin") for number in range(COUNT)]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        with open(self.paths[index], "rb") as file:
            values = list(file.read())
        return self.torch.tensor(values) + self.torch.rand(1) + random.random()


class Written(Files):
    def __getitem__(self, index: int) -> Any:
        Path(self.paths[index]).write_bytes(bytes([index + 1, 7]))
        return super().__getitem__(index)


class ReadByC(Files):
    """As Python sees it: it is read by nobody."""

    def __getitem__(self, index: int) -> Any:
        return self.torch.ones(2)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    folder.mkdir()
    for number in range(COUNT):
        (folder / f"{number}.bin").write_bytes(bytes([number, 255 - number]))
    return folder


@pytest.fixture
def ram(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Any folder will do, wherever it lies."""
    folder = tmp_path / "ram"
    folder.mkdir()
    monkeypatch.setattr(folders, "RAM_DISK", str(folder))
    monkeypatch.setattr(copying, "in_memory", set)
    return folder


@pytest.fixture
def staging(ram: Path) -> Iterator[Any]:
    made: list[StageData] = []

    def stage(**setting: Any) -> StageData:
        made.append(StageData(**setting))
        return made[-1]

    yield stage
    for lever in made:
        lever.end()
    assert list(ram.iterdir()) == []


def passes(torch: Any, dataset: Any, **options: Any) -> list[Any]:
    """All batches of two passes, and what is left of the random streams afterwards."""
    torch.manual_seed(3)
    random.seed(3)
    options = {"batch_size": 8, "shuffle": True, **options}
    batches = torch.utils.data.DataLoader(dataset, **options)
    drawn = [batch.tolist() for _ in range(2) for batch in batches]
    return [*drawn, random.random(), torch.rand(2).tolist()]


def refused(jobs: Any, torch: Any, lever: StageData, dataset: Any, **options: Any) -> str:
    """Why nothing is staged. The batches are the same all the same."""
    without = passes(torch, dataset, **options)
    with jobs.under(lever):
        assert passes(torch, dataset, **options) == without
    receipt = lever.receipt()
    assert not receipt.applied
    return receipt.reason


class TestStaged:
    @pytest.mark.parametrize(
        "loading", [{}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}]
    )
    def test_the_same_batches(
        self, jobs: Any, torch: Any, store: Path, staging: Any, loading: dict[str, Any]
    ) -> None:
        dataset = Files(torch, store)
        without = passes(torch, dataset, **loading)
        lever = staging()
        with jobs.under(lever):
            assert passes(torch, dataset, **loading) == without
        receipt = lever.receipt()
        assert receipt.applied and receipt.once_seconds > 0
        evidence: dict[str, Any] = {**receipt.evidence}
        assert (evidence["datasets"], evidence["files"], evidence["bytes"]) == (1, 40, 80)
        assert evidence["reads"] == 2 * COUNT  # of all processes
        assert evidence["seconds"] == round(receipt.once_seconds, 3)

    def test_it_is_the_copies_that_are_read(
        self, jobs: Any, torch: Any, store: Path, staging: Any
    ) -> None:
        with jobs.under(staging()):
            batches = torch.utils.data.DataLoader(Files(torch, store), batch_size=8)
            iter(batches)
            for path in store.iterdir():
                subprocess.run(["rm", path], check=True)  # unseen
            assert len(list(batches)) == COUNT / 8

    def test_what_is_written_is_read(
        self, jobs: Any, torch: Any, store: Path, staging: Any
    ) -> None:
        dataset = Written(torch, store)
        assert "Python opened no file" in refused(jobs, torch, staging(), dataset, num_workers=2)
        assert next(store.glob("5.bin")).read_bytes() == bytes([6, 7])

    def test_an_iterable_dataset(self, jobs: Any, torch: Any, store: Path, staging: Any) -> None:
        class Stream(torch.utils.data.IterableDataset):  # type: ignore[misc]
            def __init__(self) -> None:
                self.folder = str(store)

            def __iter__(self) -> Iterator[int]:
                return (len(path.read_bytes()) for path in sorted(store.iterdir()))

        lever = staging()
        with jobs.under(lever):
            assert len(list(torch.utils.data.DataLoader(Stream(), batch_size=4))) == COUNT / 4
        assert lever.receipt().evidence["reads"] == COUNT

    def test_a_dataset_in_two_loaders_is_copied_once(
        self, jobs: Any, torch: Any, store: Path, staging: Any
    ) -> None:
        lever = staging()
        with jobs.under(lever):
            passes(torch, Files(torch, store))
            passes(torch, Files(torch, store), shuffle=False)
        assert lever.receipt().evidence["datasets"] == 1

    def test_two_datasets(self, jobs: Any, torch: Any, store: Path, staging: Any) -> None:
        lever, first, second = staging(), Files(torch, store), Files(torch, store)
        first.paths, second.paths = first.paths[:20], second.paths[20:]
        with jobs.under(lever):
            passes(torch, first)
            passes(torch, second)
        evidence = lever.receipt().evidence
        assert (evidence["datasets"], evidence["files"], evidence["reads"]) == (2, 40, 80)

    def test_together_with_others(self, jobs: Any, torch: Any, store: Path, staging: Any) -> None:
        """The cache, too, is filled from the copies, by processes that it forks.

        So small are its batches that the job reads them itself, and the workers have no work.
        """

        class Plain(Files):
            def __getitem__(self, index: int) -> Any:
                return torch.tensor(list(Path(self.paths[index]).read_bytes()))

        dataset = Plain(torch, store)
        without = passes(torch, dataset)
        staged, cache, workers = staging(), CacheDataset(), LoaderWorkers()
        with jobs.under(workers, staged, cache):
            assert passes(torch, dataset) == without
        assert staged.receipt().evidence["reads"] == COUNT
        assert cache.receipt().evidence["workers_spared"] == workers.workers
        assert workers.receipt().reason == "no batch came from a worker"

    def test_the_same_training(self, jobs: Any, staging: Any) -> None:
        losses = jobs.train()
        with jobs.under(staging()):
            assert jobs.train() == losses


class TestNotStaged:
    def test_more_than_fits(
        self,
        jobs: Any,
        torch: Any,
        store: Path,
        staging: Any,
        ram: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(host_memory, "available", lambda: 10_000)
        reason = refused(jobs, torch, staging(), Files(torch, store))
        assert "of memory, and may take" in reason
        assert list(ram.iterdir()) == []

    def test_a_slow_store(
        self,
        jobs: Any,
        torch: Any,
        store: Path,
        staging: Any,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(copying, "_copy", lambda *how: time.sleep(0.6))
        reason = refused(jobs, torch, staging(fill_seconds=1), Files(torch, store))
        assert reason == "copying the dataset's files takes too long"

    def test_readers_written_in_c(self, jobs: Any, torch: Any, store: Path, staging: Any) -> None:
        assert "written in C" in refused(jobs, torch, staging(), ReadByC(torch, store))

    def test_a_dataset_without_files(self, jobs: Any, torch: Any, staging: Any) -> None:
        reason = refused(jobs, torch, staging(), torch.utils.data.Subset(list(range(9)), [1, 2]))
        assert reason == "the dataset names no files"

    def test_without_a_ram_disk(
        self,
        jobs: Any,
        torch: Any,
        store: Path,
        staging: Any,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(folders, "RAM_DISK", "/none")
        reason = refused(jobs, torch, staging(), Files(torch, store))
        assert reason == "this system has no RAM disk at /none"

    def test_a_ram_disk_that_cannot_be_written(
        self,
        jobs: Any,
        torch: Any,
        store: Path,
        staging: Any,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def forbidden(*args: Any, **how: Any) -> str:
            raise PermissionError

        monkeypatch.setattr("tempfile.mkdtemp", forbidden)
        reason = refused(jobs, torch, staging(), Files(torch, store))
        assert reason == "the RAM disk cannot be used (PermissionError)"

    def test_workers_that_spawn(self, jobs: Any, torch: Any, store: Path, staging: Any) -> None:
        lever = staging()
        batches = torch.utils.data.DataLoader(
            Files(torch, store), num_workers=1, multiprocessing_context="spawn"
        )
        lever._begin((batches,), {})  # a pass is not made: spawning takes its time
        assert "start by spawn" in lever.receipt().reason

    def test_without_a_loader(self, jobs: Any, staging: Any) -> None:
        lever = staging()
        with jobs.under(lever):
            pass
        assert lever.receipt().reason == "the script has no loader"


JOB = """\
import sys, time
from pathlib import Path
import torch
from hotloop.levers.staging import copying, folders
from hotloop.levers.stage_data import StageData
from tests.levers import jobs
from tests.levers.test_stage_data import Files
folders.RAM_DISK, copying.in_memory = sys.argv[2], set
lever = StageData()
with jobs.under(lever):
    loader = torch.utils.data.DataLoader(Files(torch, Path(sys.argv[1])), num_workers=2)
    for batch in loader:
        print("trains", flush=True)
        if sys.argv[3] == "killed":
            time.sleep(60)
"""


@pytest.mark.parametrize("how", ["killed", "ended"])
def test_a_job_leaves_no_memory_behind(torch: Any, store: Path, ram: Path, how: str) -> None:
    words = [sys.executable, "-c", JOB, str(store), str(ram), how]
    job = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert job.stdout is not None and job.stdout.readline() == "trains\n"
    if how == "killed":
        assert len(list(ram.iterdir())) == 1
        job.kill()
        job.wait()
        deadline = time.monotonic() + 20
        while list(ram.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.killpg(job.pid, signal.SIGKILL)  # its workers notice by themselves, in some seconds
    job.communicate()
    assert list(ram.iterdir()) == []


class TestExpected:
    def measured(self, waiting: float) -> Any:
        log = builders.Log()
        for _ in range(20):
            log.data(waiting, 8).forward(5, 8).backward(8).optimizer(3)
        return builders.measurement(log.events)

    @pytest.mark.parametrize("names", [True, None])
    def test_it_could_win_the_wait(self, jobs: Any, names: bool | None) -> None:
        loaders = [builders.loader(names_files=names, samples=None)]
        seen = jobs.seen(measurement=self.measured(16), loaders=loaders)
        expected = StageData.expected(seen)
        assert expected.share == pytest.approx(0.5) and expected.is_worth_trying
        assert StageData.settings(seen) == [{}]

    def test_what_it_cannot_help(self, jobs: Any) -> None:
        def reason(waiting: float = 16, **loader: Any) -> str:
            loaders = [builders.loader(**loader)]
            seen = jobs.seen(measurement=self.measured(waiting), loaders=loaders)
            return StageData.expected(seen).reason

        assert "of a step" in reason(waiting=0.1)
        assert reason(names_files=False) == "the dataset names no files"
        assert reason(dataset="TensorDataset") == "the dataset's items lie in memory already"
        nothing = jobs.seen(measurement=self.measured(16), loaders=[])
        assert StageData.expected(nothing).reason == "the script has no loader"

    def test_settings_that_cannot_be(self) -> None:
        assert "fill_seconds" in StageData(fill_seconds=0).problem()
        assert "memory_share" in StageData(memory_share=1.5).problem()
