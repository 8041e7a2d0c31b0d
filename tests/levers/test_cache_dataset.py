from __future__ import annotations

import copy
import gc
import multiprocessing
import pickle
import random
import time
from mmap import mmap
from typing import Any, NamedTuple

import pytest

from hotloop.levers.cache_dataset import CacheDataset
from hotloop.levers.caching import filling, host_memory
from hotloop.levers.loader_workers import LoaderWorkers
from tests import builders

LOADINGS: list[dict[str, Any]] = [
    {},
    {"num_workers": 2},
    {"num_workers": 2, "persistent_workers": True},
]
each_loading = pytest.mark.parametrize("loading", LOADINGS, ids=["none", "workers", "persistent"])


class Settings:
    size, unread = 2, 0


LABELS = {"shift": 1}
PHASE = multiprocessing.Value("i", 0)
SCALE = 1


def scaled(value: int) -> int:
    return value * SCALE


class Configured:
    """Its items depend on what stands in the module."""

    def __len__(self) -> int:
        return 70

    def __getitem__(self, index: int) -> int:
        return scaled(Settings.size + LABELS["shift"]) + int(PHASE.value)


def set_size() -> None:
    Settings.size = 5


def set_label() -> None:
    LABELS["shift"] = 4


def set_phase() -> None:
    PHASE.value = 3


def set_scale() -> None:
    global SCALE
    SCALE = 2


class Pair(NamedTuple):
    x: Any
    y: int


class Counter:
    """Shared with other processes, in memory that nobody takes for a setting."""

    def __init__(self) -> None:
        self._memory = memoryview(mmap(-1, 8)).cast("q")
        self.lock = multiprocessing.Lock()

    @property
    def value(self) -> int:
        return int(self._memory[0])

    @value.setter
    def value(self, count: int) -> None:
        self._memory[0] = count


class Made:
    """A map-style dataset by duck typing, whose items a function makes."""

    def __init__(self, make: Any, count: int = 70) -> None:
        self.make, self.count, self.drawn = make, count, Counter()

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        with self.drawn.lock:
            self.drawn.value += 1  # also what is drawn in other processes
        return self.make(index)


@pytest.fixture
def numbers(torch: Any) -> Made:
    return Made(lambda index: (torch.full((3, 2), float(index)), index))


def passes(torch: Any, dataset: Any, count: int = 3, **options: Any) -> list[Any]:
    """All batches, and what is left of the random streams afterwards."""
    torch.manual_seed(3)
    random.seed(3)
    options = {"batch_size": 8, "shuffle": True, **options}
    batches = torch.utils.data.DataLoader(dataset, **options)
    drawn = [plain(torch, batch) for _ in range(count) for batch in batches]
    return [*drawn, random.random(), torch.rand(2).tolist()]


def plain(torch: Any, thing: Any) -> Any:
    """To be compared. Strides count: models are faster or slower by them."""
    if isinstance(thing, torch.Tensor):
        return thing.dtype, thing.stride(), thing.tolist()
    if isinstance(thing, dict):
        return {key: plain(torch, value) for key, value in thing.items()}
    if isinstance(thing, list | tuple):
        return type(thing).__name__, [plain(torch, part) for part in thing]
    return type(thing), thing.tolist() if hasattr(thing, "tolist") else thing


def refused(jobs: Any, torch: Any, dataset: Any, **options: Any) -> str:
    """Why it is not kept. The batches are the same all the same."""
    lever = CacheDataset()
    without = passes(torch, dataset, **options)
    with jobs.under(lever):
        assert passes(torch, dataset, **options) == without
    assert not lever.receipt().applied
    return lever.receipt().reason


class TestKept:
    @each_loading
    def test_the_same_batches(
        self, jobs: Any, torch: Any, numbers: Made, loading: dict[str, Any]
    ) -> None:
        without = passes(torch, numbers, **loading)
        numbers.drawn.value = 0
        lever = CacheDataset()
        with jobs.under(lever):
            assert passes(torch, numbers, **loading) == without
        assert lever.receipt().applied
        evidence: dict[str, Any] = {**lever.receipt().evidence}
        assert (evidence["datasets"], evidence["items"], evidence["batches"]) == (1, 70, 27)
        assert evidence["bytes"] > 70 * 24
        assert lever.receipt().once_seconds >= evidence["fill_seconds"] - 0.001 > 0
        if not loading:
            assert numbers.drawn.value == 70  # each item once, in three passes

    def test_the_same_training(self, jobs: Any) -> None:
        losses = jobs.train()
        with jobs.under(CacheDataset()):
            assert jobs.train() == losses

    def test_together_with_more_workers(self, jobs: Any, torch: Any, numbers: Made) -> None:
        without = passes(torch, numbers, collate_fn=list)
        levers = LoaderWorkers(), CacheDataset()
        with jobs.under(*levers):
            assert passes(torch, numbers, collate_fn=list) == without
        assert all(lever.receipt().applied for lever in levers)

    def test_more_workers_for_batches_that_need_none(
        self, jobs: Any, torch: Any, numbers: Made
    ) -> None:
        """The search then measures the plan without them."""
        without = passes(torch, numbers)
        workers, cache = LoaderWorkers(), CacheDataset()
        with jobs.under(workers, cache):
            assert passes(torch, numbers) == without
        assert cache.receipt().evidence["workers_spared"] == workers.workers
        assert workers.receipt().reason == "no batch came from a worker"

    @pytest.mark.parametrize("batch_size", [8, None])
    def test_what_items_may_hold(self, jobs: Any, torch: Any, batch_size: int | None) -> None:
        numpy = pytest.importorskip("numpy")

        def make(index: int) -> Any:
            pixels = torch.arange(24.0).view(2, 4, 3) + index
            return {
                "image": pixels.permute(2, 0, 1),
                "crop": pixels[:, 1:3],
                "mask": pixels > 12,
                "half": pixels.bfloat16(),
                "none": torch.empty(0),
                "scalar": torch.tensor(index),
                "array": numpy.arange(6).reshape(2, 3).T + index,
                "number": numpy.float32(index),
                "pair": Pair(torch.ones(2), index),
                "list": [index, 0.5, f"text {index}", True],
            }

        # Of the dataset's own items a crop has gaps in memory; none of a batch has.
        made = Made(make)
        if batch_size is None:
            make_one = made.make
            made.make = lambda index: {k: v for k, v in make_one(index).items() if k != "crop"}
        without = passes(torch, made, batch_size=batch_size)
        lever = CacheDataset()
        with jobs.under(lever):
            assert passes(torch, made, batch_size=batch_size) == without
        assert lever.receipt().applied

    def test_a_subset_of_a_dataset(self, jobs: Any, torch: Any, numbers: Made) -> None:
        part = torch.utils.data.Subset(numbers, range(60, 3, -2))
        without = passes(torch, part)
        lever = CacheDataset()
        with jobs.under(lever):
            assert passes(torch, part) == without
        assert lever.receipt().evidence["items"] == len(part)

    def test_a_sampler_that_draws_from_an_array(self, jobs: Any, torch: Any, numbers: Made) -> None:
        numpy = pytest.importorskip("numpy")
        sampler = torch.utils.data.SubsetRandomSampler(numpy.arange(5, 69, 2))
        without = passes(torch, numbers, shuffle=False, sampler=sampler)
        lever = CacheDataset()
        with jobs.under(lever):
            assert passes(torch, numbers, shuffle=False, sampler=sampler) == without
        assert lever.receipt().evidence["batches"] == 12

    @pytest.mark.parametrize("workers", [0, 2])
    def test_what_a_script_is_given_it_may_change(
        self, jobs: Any, torch: Any, numbers: Made, workers: int
    ) -> None:
        with jobs.under(CacheDataset()):
            batches = torch.utils.data.DataLoader(
                numbers, batch_size=None, num_workers=workers, collate_fn=lambda item: list(item)
            )
            for _ in range(2):
                for index, item in enumerate(batches):
                    assert item[0].eq(index).all() and item[1] == index
                    item[0].zero_()
                    item[1] = -1

    @pytest.mark.parametrize("workers", [0, 2])
    @pytest.mark.parametrize("batch_size", [1, 7])
    def test_batches_that_a_script_changes(
        self, jobs: Any, torch: Any, workers: int, batch_size: int
    ) -> None:
        """torch makes them of the items as they are kept; they lie elsewhere."""
        numpy = pytest.importorskip("numpy")

        def make(index: int) -> Any:
            here = torch.full((2,), float(index))
            return {"tensor": here, "array": here.numpy(), "parts": [here.clone(), index]}

        lever = CacheDataset()
        with jobs.under(lever):
            options = {"batch_size": batch_size, "num_workers": workers}
            batches = torch.utils.data.DataLoader(Made(make), **options)
            for _ in range(3):
                first = 0
                for batch in batches:
                    firsts = numpy.arange(first, first + len(batch["tensor"]))
                    for part in (batch["tensor"], batch["array"], batch["parts"][0]):
                        assert (part.numpy() == firsts[:, None]).all()
                        part.zero_()
                    assert batch["parts"][1].tolist() == [*firsts]
                    batch["parts"].clear()
                    first += len(firsts)
        assert lever.receipt().applied

    def test_torchs_own_way_to_make_batches_changed_by_the_script(
        self, jobs: Any, torch: Any, numbers: Made, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ways = torch.utils.data._utils.collate.default_collate_fn_map
        with jobs.under(CacheDataset()):
            monkeypatch.setitem(ways, torch.Tensor, lambda batch, **_: list(batch))
            batches = torch.utils.data.DataLoader(numbers, batch_size=8)
            for _ in range(2):
                for index, x in enumerate(x for xs, _ in batches for x in xs):
                    assert x.eq(index).all()
                    x.zero_()

    def test_a_batch_that_is_no_more_than_its_items(
        self, jobs: Any, torch: Any, numbers: Made
    ) -> None:
        with jobs.under(CacheDataset()):
            batches = torch.utils.data.DataLoader(numbers, batch_size=8, collate_fn=list)
            for _ in range(2):
                for index, (x, y) in enumerate(item for batch in batches for item in batch):
                    assert x.eq(index).all() and y == index
                    x.zero_()

    def test_the_loader_is_as_the_script_built_it(self, jobs: Any, torch: Any) -> None:
        numbers = Still()
        with jobs.under(CacheDataset()):
            batches = torch.utils.data.DataLoader(numbers, batch_size=8)
            for _ in range(2):
                first = next(iter(batches)).tolist()
            assert batches.dataset is numbers
            assert len(copy.deepcopy(batches).dataset) == 70
            again = pickle.loads(pickle.dumps(batches))
            assert next(iter(again)).tolist() == first
        assert "__init__" not in vars(torch.utils.data._utils.fetch._MapDatasetFetcher)

    def test_a_dataset_in_two_loaders_is_drawn_once(
        self, jobs: Any, torch: Any, numbers: Made
    ) -> None:
        lever = CacheDataset()
        with jobs.under(lever):
            passes(torch, numbers)
            passes(torch, numbers, shuffle=False)
        assert numbers.drawn.value == len(numbers)

    def test_what_is_kept_goes_with_the_dataset(self, jobs: Any, torch: Any) -> None:
        lever = CacheDataset()
        with jobs.under(lever):
            passes(torch, Made(float))
            gc.collect()
            assert lever._caches[0].filled is None
        assert lever.receipt().applied


class Still:
    """One that can be pickled."""

    def __len__(self) -> int:
        return 70

    def __getitem__(self, index: int) -> Any:
        return float(index)


class TestNotKept:
    @each_loading
    @pytest.mark.parametrize("when", [0, 69])
    def test_one_item_that_draws_a_random_number(
        self, jobs: Any, torch: Any, loading: dict[str, Any], when: int
    ) -> None:
        def make(index: int) -> Any:
            return torch.rand(2) if index == when else torch.ones(2)

        assert (
            refused(jobs, torch, Made(make), **loading) == "the dataset's items draw random numbers"
        )

    def test_what_it_has_locked_meanwhile(self, jobs: Any, torch: Any) -> None:
        """Whoever draws another item, when it is known, comes to the end of it."""
        lock = multiprocessing.Lock()

        def make(index: int) -> Any:
            if index < filling.CHUNK:
                return random.random()
            with lock:
                time.sleep(0.03)
            return 0.0

        lever = CacheDataset()
        with jobs.under(lever):
            next(iter(torch.utils.data.DataLoader(Made(make))))
        assert lever.receipt().reason == "the dataset's items draw random numbers"
        assert lock.acquire(timeout=20)

    def test_wherever_it_comes_from(self, jobs: Any, torch: Any) -> None:
        numpy = pytest.importorskip("numpy")
        own = torch.Generator()
        hers = numpy.random.default_rng(1)
        draws = [
            lambda index: random.random(),
            lambda index: numpy.random.rand(),
            lambda index: torch.rand(1, generator=own),
            lambda index: hers.random(),
            lambda index: numpy.random.default_rng().random(),
            lambda index: float(random.seed(index) or 0),
        ]
        for make in draws:
            lever = CacheDataset()
            with jobs.under(lever):
                passes(torch, Made(make), count=1)
            assert lever.receipt().reason == "the dataset's items draw random numbers"

    def test_an_item_that_fails_fails_as_before(self, jobs: Any, torch: Any) -> None:
        def make(index: int) -> Any:
            if index == 40:
                raise OSError("a broken file")
            return index

        lever = CacheDataset()
        with jobs.under(lever):
            batches = torch.utils.data.DataLoader(Made(make), batch_size=8)
            with pytest.raises(OSError, match="a broken file"):
                list(batches)
        assert lever.receipt().reason == "an item could not be kept: OSError"

    def test_items_that_change_their_dataset(self, jobs: Any, torch: Any) -> None:
        dataset = Made(None)
        dataset.asked = 0  # type: ignore[attr-defined]

        def make(index: int) -> int:
            dataset.asked += 1  # type: ignore[attr-defined]
            return index

        dataset.make = make
        assert refused(jobs, torch, dataset) == "drawing an item changes the dataset"

    def test_a_file_opened_at_the_first_item_is_no_change(self, jobs: Any, torch: Any) -> None:
        dataset = Made(None)
        dataset.file = None  # type: ignore[attr-defined]

        def make(index: int) -> int:
            dataset.file = dataset.file or object()  # type: ignore[attr-defined]
            return index

        dataset.make = make
        lever = CacheDataset()
        with jobs.under(lever):
            passes(torch, dataset)
        assert lever.receipt().applied
        assert dataset.file is None  # type: ignore[attr-defined]

    def test_objects_that_may_change(self, jobs: Any, torch: Any) -> None:
        reason = refused_quietly(jobs, torch, Made(lambda index: {"x": {index}}))
        assert reason == "the dataset's items hold a builtins.set, which may change"

    def test_more_than_fits(
        self, jobs: Any, torch: Any, numbers: Made, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(host_memory, "available", lambda: 5_000)
        assert "of memory, and may take" in refused(jobs, torch, numbers)

    def test_it_stops_before_memory_is_short(
        self, jobs: Any, torch: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Known from a few hundred items on, not when it is too late."""
        monkeypatch.setattr(host_memory, "available", lambda: 2**22)
        big = Made(lambda index: torch.zeros(1000), count=100_000)
        with jobs.under(CacheDataset()):
            next(iter(torch.utils.data.DataLoader(big)))
        assert big.drawn.value < 50_000

    def test_what_takes_too_long_is_given_up_early(
        self, jobs: Any, torch: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(filling, "ENOUGH_SECONDS", 0.0)

        def make(index: int) -> int:
            time.sleep(0.0005)
            return index

        slow, lever = Made(make, count=2**20), CacheDataset()
        with jobs.under(lever):
            next(iter(torch.utils.data.DataLoader(slow)))
        assert lever.receipt().reason.startswith("filling the cache would take ")
        assert slow.drawn.value < 100_000

    @pytest.mark.parametrize("stops", ["dies", "hangs"])
    def test_a_process_that_does_not_come_to_an_end(
        self, jobs: Any, torch: Any, stops: str
    ) -> None:
        here = multiprocessing.current_process().name

        def make(index: int) -> int:
            if index == 50 and multiprocessing.current_process().name != here:
                if stops == "dies":
                    raise SystemExit
                multiprocessing.Event().wait()
            return index

        lever, without = CacheDataset(fill_seconds=1), passes(torch, Made(int))
        with jobs.under(lever):
            assert passes(torch, Made(make)) == without
        assert lever.receipt().reason in (
            "a process that was to fill the cache ended too soon",
            "filling the cache takes too long",
        )

    def test_datasets_that_are_left_alone(
        self, jobs: Any, torch: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        data = torch.utils.data
        whole = Still()
        whole.__getitems__ = lambda indices: [0.0 for _ in indices]  # type: ignore[attr-defined]
        for dataset, reason in (
            (jobs.Stream(), "asked for by number"),
            (data.TensorDataset(torch.ones(9, 2)), "in memory already"),
            (data.Subset(data.TensorDataset(torch.ones(9, 2)), [1, 2]), "in memory already"),
            ([torch.ones(2)] * 4, "in memory already"),
            (whole, "whole batches"),
            (jobs.Numbers(x=torch.empty(2, device="meta")), "lives on the GPU"),
        ):
            lever = CacheDataset()
            with jobs.under(lever):
                list(data.DataLoader(dataset, batch_size=4))
            assert reason in lever.receipt().reason

    def test_workers_that_spawn(self, jobs: Any, torch: Any) -> None:
        lever = CacheDataset()
        with jobs.under(lever):
            batches = torch.utils.data.DataLoader(
                Still(), num_workers=1, multiprocessing_context="spawn"
            )
            lever._open((batches,), {})  # a pass is not made: spawning takes its time
        assert "start by spawn" in lever._caches[0].reason

    def test_batches_asked_for_by_one_index(self, jobs: Any, torch: Any) -> None:
        lists = Made(lambda index: torch.tensor(index))
        sampler = torch.utils.data.BatchSampler(range(70), 7, False)
        lever = CacheDataset()
        with jobs.under(lever):
            drawn = list(torch.utils.data.DataLoader(lists, sampler=sampler, batch_size=None))
        assert len(drawn) == 10 and drawn[9].tolist() == list(range(63, 70))
        assert lever.receipt().reason == "no batch came from what is kept"

    def test_without_a_loader(self, jobs: Any) -> None:
        lever = CacheDataset()
        with jobs.under(lever):
            pass
        assert lever.receipt().reason == "the script has no loader"


def refused_quietly(jobs: Any, torch: Any, dataset: Any) -> str:
    lever = CacheDataset()
    with jobs.under(lever):
        list(torch.utils.data.DataLoader(dataset, collate_fn=lambda items: items))
    return lever.receipt().reason


class TestChanged:
    """A dataset that the script changes is asked again, from that batch or that pass on."""

    @pytest.mark.parametrize("workers", [0, 1])
    def test_between_passes(self, jobs: Any, torch: Any, workers: int) -> None:
        labels = [1] * 70
        dataset = Made(lambda index: labels[index])
        dataset.labels = labels  # type: ignore[attr-defined]
        lever = CacheDataset()
        with jobs.under(lever):
            batches = torch.utils.data.DataLoader(dataset, batch_size=70, num_workers=workers)
            assert next(iter(batches)).sum() == 70
            labels[50] = 5
            assert next(iter(batches)).sum() == 74
        assert lever.receipt().reason == "the script changes its dataset"

    @pytest.mark.parametrize("workers", [0, 1])
    @pytest.mark.parametrize("change", [set_size, set_label, set_phase, set_scale])
    def test_by_what_its_code_reads_of_the_script(
        self, jobs: Any, torch: Any, monkeypatch: Any, change: Any, workers: int
    ) -> None:
        """As a picture's size, in a class of settings, that grows from epoch to epoch."""
        monkeypatch.setattr(Settings, "size", 2)
        monkeypatch.setitem(LABELS, "shift", 1)
        monkeypatch.setattr(PHASE, "value", 0)
        monkeypatch.setitem(globals(), "SCALE", 1)
        lever = CacheDataset()
        with jobs.under(lever):
            batches = torch.utils.data.DataLoader(Configured(), batch_size=70, num_workers=workers)
            assert next(iter(batches)).sum() == 70 * 3
            monkeypatch.setattr(Settings, "unread", 1)
            assert next(iter(batches)).sum() == 70 * 3
            assert lever.receipt().applied
            change()
            assert next(iter(batches)).sum() == 70 * 6
        assert lever.receipt().reason == "the script changes its dataset"

    def test_by_a_setting_in_the_middle_of_a_pass(
        self, jobs: Any, torch: Any, monkeypatch: Any
    ) -> None:
        monkeypatch.setattr(Settings, "size", 2)
        lever = CacheDataset()
        with jobs.under(lever):
            batches = iter(torch.utils.data.DataLoader(Configured(), batch_size=8))
            assert next(batches).tolist() == [3] * 8
            set_size()
            assert next(batches).tolist() == [6] * 8

    def test_in_the_middle_of_a_pass(self, jobs: Any, torch: Any) -> None:
        dataset = Made(int)
        lever = CacheDataset()
        with jobs.under(lever):
            batches = iter(torch.utils.data.DataLoader(dataset, batch_size=8))
            assert next(batches).tolist() == list(range(8))
            dataset.make = lambda index: -index
            assert next(batches).tolist() == [-index for index in range(8, 16)]
        assert lever.receipt().reason == "the script changes its dataset"

    def test_in_place(self, jobs: Any, torch: Any) -> None:
        numpy = pytest.importorskip("numpy")
        for values in (torch.zeros(70), numpy.zeros(70)):
            dataset = Made(values.__getitem__)
            dataset.values = values  # type: ignore[attr-defined]
            lever = CacheDataset()
            with jobs.under(lever):
                batches = torch.utils.data.DataLoader(dataset, batch_size=70)
                assert next(iter(batches)).sum() == 0
                assert lever.receipt().applied
                values[3] = 1
                assert next(iter(batches)).sum() == 1
            assert lever.receipt().reason == "the script changes its dataset"

    def test_a_transform_that_is_replaced(self, jobs: Any, torch: Any) -> None:
        """Inside what the dataset is a part of: seen before the next pass."""
        dataset = Made(int)
        part = torch.utils.data.Subset(dataset, range(8))
        lever = CacheDataset()
        with jobs.under(lever):
            batches = torch.utils.data.DataLoader(part, batch_size=8)
            assert next(iter(batches)).sum() == 28
            dataset.make = lambda index: -index
            assert next(iter(batches)).sum() == -28
        assert lever.receipt().reason == "the script changes its dataset"

    def test_a_dataset_for_every_pass(self, jobs: Any, torch: Any) -> None:
        lever = CacheDataset()
        with jobs.under(lever):
            for _ in range(4):
                passes(torch, Made(int), count=1)
                gc.collect()
        assert [cache.reason for cache in lever._caches][1] == (
            "the script builds its dataset anew for every pass"
        )
        assert lever.receipt().evidence["datasets"] == 1


class TestExpected:
    def measured(self, waiting: float) -> Any:
        log = builders.Log()
        for _ in range(20):
            log.data(waiting, 8).forward(5, 8).backward(8).optimizer(3)
        return builders.measurement(log.events)

    def test_it_could_win_the_wait(self, jobs: Any) -> None:
        expected = CacheDataset.expected(jobs.seen(measurement=self.measured(16)))
        assert expected.share == pytest.approx(0.5) and expected.is_worth_trying

    def test_what_it_cannot_help(self, jobs: Any) -> None:
        def reason(waiting: float = 16, cores: int = 8, **loader: Any) -> str:
            loaders = [builders.loader(**loader)]
            measurement = self.measured(waiting)
            return CacheDataset.expected(
                jobs.seen(cores, measurement=measurement, loaders=loaders)
            ).reason

        assert "of a step" in reason(waiting=0.1)
        assert reason(samples=None) == "the dataset's items cannot be asked for by number"
        assert reason(dataset="TensorDataset") == "the dataset's items lie in memory already"
        assert "at the least" in reason(samples=800_000, batches=100_000, cores=2)
        assert not reason(batches=10**9, cores=2)  # a sampler without an end, over 800 items
        nothing = jobs.seen(measurement=self.measured(16), loaders=[])
        assert CacheDataset.expected(nothing).reason == "the script has no loader"

    def test_settings_that_cannot_be(self) -> None:
        assert "fill_seconds" in CacheDataset(fill_seconds=0).problem()
        assert "memory_share" in CacheDataset(memory_share=1.5).problem()
