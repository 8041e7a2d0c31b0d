from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hotloop.diagnose.base import Case, Effort, Finding
from hotloop.diagnose.rules.waiting_for_data import waiting_for_data
from hotloop.inspection import Frame, Inspection, LoaderLook
from tests.builders import Log, loader
from tests.diagnose.making import (
    MAIN,
    NEXT,
    TORCH_LOADER,
    case,
    hand_drawn,
    library,
    operator_line,
    operators,
    samples,
    users,
    with_loader,
    worker,
)

ITEM = users(38, "Pictures.__getitem__", "picture = self.prepare(index)", "data.py")
WAITS = library("multiprocessing/queues.py", "Queue.get")


def waits(data: float = 16.0, compute: float = 4.0, steps: int = 20) -> Log:
    """Steps that wait this long for their data."""
    log = Log()
    for _ in range(steps):
        log.data(data, 8).forward(compute / 2, 8).backward(compute / 4).optimizer(compute / 4)
    return log


def loaded(*stacks: tuple[float, list[Frame]], item: float = 0.002, **changes: Any) -> Case:
    """Every core has a worker, and items take two milliseconds of it."""
    look = worker(
        *stacks,
        item_seconds=[item] * 80,
        item_cpu_seconds=[item] * 80,
        collate_seconds=[0.0] * 10,
        batch_items=[8] * 10,
    )
    inspection = Inspection(steps=10, loaders=[replace(look, **changes)])
    return case(waits(), inspection, **with_loader(workers=2, persistent=True))


def found(one: Case) -> Finding:
    finding = waiting_for_data(one)
    assert finding is not None
    return finding


def test_a_job_that_is_fed_in_time_has_nothing_to_find() -> None:
    assert waiting_for_data(case(waits(data=0.5, compute=20))) is None


def test_without_a_look_inside_it_is_the_wait_that_could_be_won() -> None:
    finding = found(case(waits(), **with_loader(workers=2, persistent=True)))
    assert finding.share == pytest.approx(0.8)
    assert finding.cause == "" and finding.title == "80% of a step waits for data"
    assert finding.levers == ("cache_dataset",)  # all cores have their worker
    assert "every core" in finding.remedy


def test_the_training_process_itself_prepares_what_another_core_could() -> None:
    finding = found(case(waits(), **with_loader(workers=0)))
    assert finding.cause == "too_few_workers" and finding.levers == (
        "loader_workers",
        "cache_dataset",
    )
    assert finding.effort is Effort.SETTING
    # Two threads and two workers have half a core each. Those wait for each other and need 16 ms
    # for 4 of computing; meanwhile these load for 8 ms each, which is a batch.
    assert finding.share == pytest.approx(0.2)


def test_a_worker_that_keeps_up_needs_no_other_beside_it() -> None:
    """It makes a batch in 5 ms, and a step computes for 50: the wait is for something else."""
    look = worker(
        item_seconds=[0.0005] * 80,
        item_cpu_seconds=[0.0005] * 80,
        collate_seconds=[0.001] * 10,
        batch_items=[8] * 10,
    )
    inspection = Inspection(steps=10, loaders=[look], alone_seconds=[0.050])
    finding = found(case(waits(data=33, compute=55), inspection, **with_loader(workers=1)))
    assert finding.cause != "too_few_workers"


def test_with_many_cores_the_training_alone_is_left() -> None:
    finding = found(case(waits(), cores=16, **with_loader(workers=0)))
    assert finding.share == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize(("batches", "kept"), [(2, True), (100, False), (None, False)])
def test_workers_of_short_passes_must_be_kept(batches: int | None, kept: bool) -> None:
    """A pass of two batches is over sooner than workers for it are started."""
    finding = found(case(waits(), cores=16, **with_loader(workers=0, batches=batches)))
    assert finding.cause == "too_few_workers"
    assert ("persistent_workers" in finding.remedy) is kept


def test_a_dataset_that_has_no_numbers_cannot_be_shared_among_workers() -> None:
    finding = found(case(waits(), **with_loader(workers=0, samples=None)))
    assert finding.cause == "" and finding.levers == ()


@pytest.mark.parametrize(
    ("cause", "frames"),
    [
        ("decoding", [users(31, "decode", "zlib.decompress(file)")]),
        ("decoding", [library("PIL/ImageFile.py", "load")]),
        ("decoding", [users(31, "read", "pixels = zlib.decompress(file)")]),
        ("augmentation", [users(26, "blur")]),
        ("augmentation", [library("torchvision/transforms/functional.py", "adjust_hue")]),
        ("conversion", [library("torchvision/transforms/functional.py", "normalize")]),
        ("conversion", [library("torchvision/transforms/transforms.py", "ToTensor.__call__")]),
        ("conversion", [library("torchvision/transforms/functional.py", "to_tensor")]),
        ("augmentation", [library("PIL/Image.py", "Image.rotate")]),
        ("tokenisation", [users(35, "Tokenizer.pieces")]),
        ("tokenisation", [library("transformers/tokenization_utils.py", "encode")]),
    ],
)
def test_what_the_lines_do_is_named(cause: str, frames: list[Frame]) -> None:
    finding = found(loaded((95.0, [ITEM, *frames]), (5.0, [ITEM])))
    assert finding.cause == cause
    assert ITEM in finding.places
    # All cores have their worker. What is augmented is meant to differ from pass to pass.
    assert finding.levers == (() if cause == "augmentation" else ("cache_dataset",))
    # Workers and training share two cores: 16 ms of loading and 4 ms, of which half was crowded.
    assert finding.share == pytest.approx(0.87, abs=0.05)


def test_items_that_are_drawn_by_chance_are_not_kept() -> None:
    calls = users(30, "Boxes.__getitem__", "picture, boxes = self.make(index)")
    assert found(loaded((95.0, [calls]))).levers == ("cache_dataset",)
    assert found(loaded((95.0, [calls]), draws=[True])).levers == ()


@pytest.mark.parametrize(
    "source",
    ["x, y = make_moons(128, noise=0.1)", "x = stream(tokens)[at]", "augment = read(crops[i])"],
)
def test_what_a_line_calls_says_what_it_does_and_not_what_it_is_told(source: str) -> None:
    finding = found(loaded((0.9, [users(30, "draw", source)]), item=0.004))
    assert finding.cause == "" and finding.title.endswith("waits for data")


def test_where_the_two_runs_have_little_in_common_no_more_than_the_wait_is_promised() -> None:
    """Steps of 80 ms, whose own work took 16 where that was looked into: others had the cores."""
    look = worker(
        (1.0, [ITEM, users(31, "decode")]),
        item_seconds=[0.001] * 80,
        item_cpu_seconds=[0.001] * 80,
        collate_seconds=[0.0] * 10,
        batch_items=[8] * 10,
    )
    inspection = Inspection(steps=10, loaders=[look], alone_seconds=[0.016])
    disturbed = waits(data=12, compute=68)
    finding = found(case(disturbed, inspection, **with_loader(workers=2, persistent=True)))
    assert finding.share == pytest.approx(12 / 80)
    assert not any("are short" in line for line in finding.evidence)


def test_a_worker_that_waits_to_be_told_does_nothing() -> None:
    decode = users(31, "decode")
    finding = found(loaded((40.0, [ITEM, decode]), (60.0, [WAITS])))
    assert finding.cause == "decoding"
    assert "100% of the loading is decoding" in finding.evidence


def test_collation_is_timed_by_itself() -> None:
    collate = users(41, "collate")
    finding = found(loaded((90.0, [collate]), item=0.0001, collate_seconds=[0.03] * 10))
    assert finding.cause == "collation" and finding.places == (collate,)
    assert finding.levers == ()  # it puts together what others have made


def test_collation_is_no_cause_where_the_rest_is_the_items() -> None:
    one = loaded((90.0, [ITEM]), item=0.001, collate_seconds=[0.005] * 10)  # 38% of the loading
    finding = found(one)
    assert finding.cause == "" and finding.title.endswith("waits for data")
    assert finding.levers == ("cache_dataset",)
    few = found(case(waits(), one.inspection, cores=16, **with_loader(workers=2)))
    assert few.cause == "too_few_workers" and not any("most" in line for line in few.evidence)


def test_items_that_keep_no_core_busy_wait_for_storage() -> None:
    finding = found(loaded((90.0, [ITEM]), item_cpu_seconds=[0.0001] * 80))
    assert finding.cause == "storage" and ITEM in finding.places
    assert finding.levers == ("cache_dataset", "stage_data")


@pytest.mark.parametrize(
    ("loader", "levers"),
    [
        ({"names_files": False}, ("cache_dataset",)),
        ({"names_files": True}, ("cache_dataset", "stage_data")),
        ({"names_files": True, "samples": None}, ("stage_data",)),
    ],
)
def test_files_can_be_staged_where_there_are_any(
    loader: dict[str, Any], levers: tuple[str, ...]
) -> None:
    one = loaded((90.0, [ITEM]), item_cpu_seconds=[0.0001] * 80)
    inventory = with_loader(workers=2, persistent=True, **loader)
    finding = found(case(waits(), one.inspection, **inventory))
    assert finding.cause == "storage" and finding.levers == levers


def test_a_few_items_may_take_most_of_the_time() -> None:
    items = [0.0005] * 78 + [0.08] * 2
    finding = found(loaded((90.0, [ITEM]), item_seconds=items, item_cpu_seconds=items))
    assert finding.cause == "slow_item" and finding.levers == ("cache_dataset",)
    assert any("80.0 ms, where 500 µs is usual" in line for line in finding.evidence)


def test_but_not_those_that_were_given_no_core_meanwhile() -> None:
    items, queued = [0.0005] * 78 + [0.08] * 2, [0.0] * 78 + [0.0795] * 2
    finding = found(
        loaded(
            (90.0, [ITEM]),
            item_seconds=items,
            item_cpu_seconds=items,
            item_queued_seconds=queued,
        )
    )
    assert finding.cause != "slow_item"


@pytest.mark.parametrize(("cores", "slow"), [(2, True), (1, False)])
def test_many_workers_wait_for_threads_of_their_own(cores: int, slow: bool) -> None:
    """A thread of theirs holds Python's lock, and is in the queue for a core."""
    items, computing = [0.0005] * 78 + [0.08] * 2, [0.0005] * 80
    look = loaded((90.0, [ITEM]), item_seconds=items, item_cpu_seconds=computing)
    made = replace(look, cores=cores)
    assert made.loader is not None and made.loader.workers == 2
    assert (found(made).cause == "slow_item") is slow


@pytest.mark.parametrize(("workers", "cause"), [(8, "too_many_workers"), (3, "")])
def test_more_workers_than_cores_can_feed(workers: int, cause: str) -> None:
    look = worker((90.0, [ITEM]), item_seconds=[2e-5] * 80, item_cpu_seconds=[2e-5] * 80)
    looks = [replace(look, collate_seconds=[1e-5] * 10, batch_items=[8] * 10)]
    inspection = Inspection(steps=10, loaders=looks, alone_seconds=[0.001])
    made = case(waits(), inspection, **with_loader(workers=workers, persistent=True))
    finding = found(made)
    assert finding.cause == cause
    assert ("no more workers than there are cores" in finding.remedy) is bool(cause)


def test_workers_that_are_started_for_every_pass() -> None:
    log = Log()
    for _ in range(10):
        log.data(60, -1).data(20, 8).forward(2, 8).backward(1).optimizer(1)
        log.data(0.1, 8).forward(2, 8).backward(1).optimizer(1).data(10, -1)
    at_the_loop = samples((1, 60, [MAIN, NEXT]))
    finding = found(case(log, Inspection(steps=9, samples=at_the_loop), **with_loader(workers=2)))
    assert finding.cause == "worker_start" and finding.places == (MAIN,)
    assert finding.share == pytest.approx(90 / 98, abs=0.03)
    assert finding.remedy.endswith("persistent_workers=True.")
    assert finding.levers == ("loader_workers",)


@pytest.mark.parametrize(
    ("batches", "cause"), [(40, "new_iterator"), (None, "new_iterator"), (1, "worker_start")]
)
def test_an_iterator_that_is_made_for_every_batch(batches: int | None, cause: str) -> None:
    log = Log()
    for _ in range(20):
        log.data(60, -1).data(20, 8).forward(2, 8).backward(1).optimizer(1)
    finding = found(case(log, loaders=[loader(workers=2, batches=batches)]))
    assert finding.cause == cause
    assert ("iter(loader)" in finding.remedy) is (cause == "new_iterator")
    assert finding.levers == (() if cause == "new_iterator" else ("loader_workers",))
    if cause == "new_iterator":
        assert finding.share == pytest.approx(80 / 84, abs=0.02)


@pytest.mark.parametrize(
    ("dataset", "size", "cause"),
    [("TensorDataset", 64, "row_by_row"), ("TensorDataset", 1, ""), ("Digits", 64, "")],
)
def test_tensors_are_taken_apart_into_rows(dataset: str, size: int, cause: str) -> None:
    log = Log()
    for _ in range(20):
        log.data(10, size).forward(5, size).backward(3).optimizer(2)
    one = case(log, cores=1, loaders=[loader(workers=0, dataset=dataset, batch_size=size)])
    finding = found(one)
    assert finding.cause == cause
    if cause:
        assert finding.share == pytest.approx(0.9 * 0.5)
        assert finding.remedy.startswith("Index the tensors by whole batches")


def test_an_iterator_also_ends_where_the_script_lets_go_of_it() -> None:
    log = Log()
    for _ in range(20):
        log.data(60, -1).data(20, 8).forward(2, 8).backward(1).optimizer(1).wait(40)
    ends = Frame(TORCH_LOADER, 1, "_MultiProcessingDataLoaderIter.__del__")
    seen = samples((90, 30, [MAIN, ends]), (114, 10, [MAIN]))
    one = case(log, Inspection(samples=seen), loaders=[loader(workers=2, batches=40)])
    dropped = one.share("rest") * 30 / 40
    assert found(one).title.startswith(f"{one.share('data') + dropped:.0%} of a step waits")


def test_keeping_workers_wins_what_it_won_when_it_was_tried() -> None:
    log = Log()
    for _ in range(10):
        log.data(60, -1).data(20, 8).forward(2, 8).backward(1).optimizer(1)
        log.data(0.1, 8).forward(2, 8).backward(1).optimizer(1).data(10, -1)
    tried = Inspection(steps=9, kept_seconds=[0.0049, 0.0049, 0.1])
    one = case(log, tried, **with_loader(workers=2))
    finding = found(one)
    assert finding.cause == "worker_start"
    assert finding.share == pytest.approx(1 - 0.0049 / one.figures.step.mean)


class TestWorkersOfAnEvaluation:
    """Loaders that are read in pauses start theirs at every pass, too: no step waits for it."""

    @staticmethod
    def job(start: float, passes: int = 5) -> Case:
        """Between two passes of training, a second goes by in those of two other loaders."""
        log = Log()
        for _ in range(passes):
            log.data(start, 8).forward(2, 8).backward(1).optimizer(1)
            for _ in range(9):
                log.data(6, 8).forward(2, 8).backward(1).optimizer(1)
            log.data(10, -1)
            for key in (1, 2):
                log.data(500, 8, key).no_grad(5, 8).data(1, 8, key).no_grad(5, 8)
                log.data(300, -1, key)
        loaders = [loader(workers=count) for count in (2, 8, 8)]
        return case(log, cores=16, loaders=loaders)

    def test_they_are_left_out(self) -> None:
        finding = found(self.job(start=6))
        assert finding.cause != "worker_start"

    def test_the_training_s_own_are_counted(self) -> None:
        one = self.job(start=106)
        finding = found(one)
        assert finding.cause == "worker_start"
        # Of five passes the first begins in the warm-up. Each of them ends.
        whole = one.figures.step.mean * one.figures.step.count
        assert finding.share == pytest.approx((4 * 0.1 + 5 * 0.01) / whole)
        assert finding.gain < 1 / (1 - one.share("data"))


def test_no_more_is_promised_than_loading_takes() -> None:
    """By what was tried in another process: chance, or something else, made it quick."""
    one = TestWorkersOfAnEvaluation.job(start=106)
    quick = Inspection(steps=9, kept_seconds=[1e-6])
    finding = found(replace(one, inspection=quick, looked=one.measurement))
    assert finding.cause == "worker_start"
    assert finding.share == finding.takes == pytest.approx(one.share("data"))


class TestWithoutALoader:
    """All that lies between two steps passes for data there."""

    @staticmethod
    def step(log: Log) -> None:
        log.wait(10).forward(4, 8).backward(4).optimizer(2)

    def drawn(self, *stack: Frame, **changes: Any) -> Case:
        log = hand_drawn(self.step)
        # A step's first 10 ms pass before anything is seen.
        seen = samples(*((25 + 20 * i, 10, [MAIN, *stack]) for i in range(10)))
        return case(log, Inspection(steps=20, samples=seen, **changes), loaders=[])

    def test_its_lines_still_tell(self) -> None:
        finding = found(self.drawn(users(52, "decode")))
        assert finding.cause == "decoding" and finding.levers == ()
        assert finding.share == pytest.approx(0.5, abs=0.01)

    def test_saving_is_no_waiting_for_data(self) -> None:
        assert waiting_for_data(self.drawn(library("torch/serialization.py", "save"))) is None

    def test_a_loop_over_tensors_is_none_either(self) -> None:
        loop = users(60, "returns")
        counted = operators(operator_line(loop, 3000))
        assert waiting_for_data(self.drawn(loop, operators=counted)) is None


def test_a_loader_that_was_looked_into_without_any_item() -> None:
    inspection = Inspection(steps=10, loaders=[LoaderLook(worker=0)])
    one = case(waits(), inspection, **with_loader(workers=2, persistent=True))
    assert found(one).cause == ""
