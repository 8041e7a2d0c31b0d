from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.diagnose.loading import Loading, loading
from hotloop.inspection import Inspection, LoaderLook
from tests.builders import training
from tests.diagnose.making import case, with_loader


def test_without_workers_the_wait_shrinks_with_the_work() -> None:
    load = Loading(step=0.02, wait=0.016, workers=0, cores=4, threads=1)
    assert load.saved_without(0.5) == pytest.approx(0.4)


def test_workers_hide_what_is_quicker_than_the_training() -> None:
    load = Loading(0.02, 0.01, workers=4, cores=16, threads=1, items=0.08, items_cpu=0.08)
    assert load.saved_without(0.4) == pytest.approx(0.4)  # 48 ms of four workers: 12 ms
    assert load.saved_without(0.9) == pytest.approx(0.5)  # the training's own 10 ms are left
    assert load.saved_with(8) == pytest.approx(0.5)


def test_cores_that_are_short_slow_down_the_training_too() -> None:
    load = Loading(0.02, 0.01, workers=2, cores=2, threads=2, items=0.03, items_cpu=0.03)
    assert load.saved_without(1.0) == pytest.approx(0.75)


def test_what_waits_takes_no_core() -> None:
    load = Loading(0.02, 0.01, workers=2, cores=2, threads=2, items=0.03, items_cpu=0.0)
    assert load.saved_without(1.0) == pytest.approx(0.5)


def test_a_batch_is_its_items_and_putting_them_together() -> None:
    look = LoaderLook(0, [0.001] * 16, [0.0005] * 16, [0.002, 0.002], [8, 8])
    load = loading(case(training(), Inspection(loaders=[look]), **with_loader(workers=2)))
    assert load.items == pytest.approx(0.008) and load.items_cpu == pytest.approx(0.004)
    assert load.collate == pytest.approx(0.002) and load.wait == pytest.approx(0.004)


def test_a_dataset_may_hand_out_whole_batches() -> None:
    look = LoaderLook(0, [0.01, 0.01], [0.01, 0.01], [0.0, 0.0], [8, 8])
    assert loading(case(training(), Inspection(loaders=[look]))).items == pytest.approx(0.01)


def test_what_a_step_takes_alone_is_believed_where_it_was_tried() -> None:
    crowded = Loading(0.060, 0.030, workers=2, cores=2, threads=2, collate=0.1)
    tried = replace(crowded, alone=0.004)
    assert crowded.saved_without(1.0) == pytest.approx(1 - 0.015 / 0.060)
    assert tried.saved_without(1.0) == pytest.approx(1 - 0.004 / 0.060)
    slower = replace(crowded, alone=0.2)  # by chance: more than what was left of the step
    assert slower.saved_without(1.0) == pytest.approx(1 - 0.030 / 0.060)


def test_without_new_workers_the_first_batch_of_a_pass_is_still_waited_for() -> None:
    load = Loading(0.040, 0.030, workers=2, cores=2, threads=1, collate=0.004, alone=0.003)
    after = 0.0035 + 0.004 / 2  # both cores are busy, and in every other step nobody overlaps
    assert load.saved_by_keeping_workers(2) == pytest.approx(1 - after / 0.040)
    assert load.saved_by_keeping_workers(200) > load.saved_by_keeping_workers(2)


def test_what_workers_have_made_must_still_be_received() -> None:
    load = Loading(0.060, 0.030, workers=4, cores=16, threads=1, collate=0.2, alone=0.01)
    assert load.saved_without(1.0) == pytest.approx(1 - 0.010 / 0.060)
    assert replace(load, handed=0.005).saved_without(1.0) == pytest.approx(1 - 0.015 / 0.060)
    # With a worker to come; until then it is part of the wait.
    alone = Loading(0.060, 0.030, workers=0, cores=16, threads=1, handed=0.005)
    assert alone.saved_without(1.0) == pytest.approx(0.5)


def test_receiving_is_counted_for_all_batches_of_a_step() -> None:
    look = LoaderLook(0, [0.001] * 16, [0.001] * 16, [0.002, 0.002], [8, 8])
    seen = Inspection(loaders=[look], handed_seconds=[0.001, 0.001, 0.5])
    assert loading(case(training(), seen, **with_loader(workers=2))).handed == pytest.approx(0.001)
