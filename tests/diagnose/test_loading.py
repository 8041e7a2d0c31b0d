from __future__ import annotations

import math
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


def test_an_evaluations_batches_are_no_steps_data() -> None:
    log = training(20)
    for _ in range(30):
        log.data(1, 2, key=1)
    log.data(1, 8).forward(4, 8).backward(8).optimizer(6)
    own = LoaderLook(None, [0.001] * 16, [0.001] * 16, [0.002, 0.002], [8, 8], loader=0)
    tested = LoaderLook(None, [0.1] * 60, [0.1] * 60, [0.5] * 30, [2] * 30, loader=1)
    load = loading(case(log, Inspection(loaders=[own, tested]), **with_loader(workers=0)))
    assert load.items == pytest.approx(0.008, rel=0.1)
    assert load.collate == pytest.approx(0.002, rel=0.1)


def test_a_dataset_may_hand_out_whole_batches() -> None:
    look = LoaderLook(0, [0.01, 0.01], [0.01, 0.01], [0.0, 0.0], [8, 8])
    assert loading(case(training(), Inspection(loaders=[look]))).items == pytest.approx(0.01)


def test_what_a_step_takes_alone_is_believed_where_it_was_tried() -> None:
    crowded = Loading(0.060, 0.030, workers=2, cores=2, threads=2, collate=0.4)
    tried = replace(crowded, alone=0.004)
    assert crowded.saved_without(1.0) == pytest.approx(1 - 0.015 / 0.060)
    assert tried.saved_without(1.0) == pytest.approx(1 - 0.004 / 0.060)
    slower = replace(crowded, alone=0.2)  # by chance: more than what was left of the step
    assert slower.saved_without(1.0) == pytest.approx(1 - 0.030 / 0.060)


def test_from_one_pass_to_the_next_nobody_loads_ahead() -> None:
    load = Loading(0.040, 0.030, workers=2, cores=4, threads=1, collate=0.004, alone=0.003)
    short = replace(load, batches_a_pass=2)
    # Both workers make a batch, then the training works off two.
    assert short.saved_with(2) == pytest.approx(1 - (0.004 + 2 * 0.003) / 2 / 0.040)
    assert load.saved_with(2) == pytest.approx(1 - 0.003 / 0.040)


def test_a_step_may_take_several_batches() -> None:
    load = Loading(0.040, 0.020, workers=2, cores=4, threads=1, collate=0.016, alone=0.012)
    several = replace(load, batches=4.0, batches_a_pass=2)
    # A quarter of each to a batch.
    assert several.saved_with(2) == pytest.approx(1 - 4 * (0.004 + 2 * 0.003) / 2 / 0.040)


def test_time_in_the_queue_for_a_core_is_no_work() -> None:
    look = LoaderLook(0, [0.003] * 16, [0.0025] * 16, [0.002, 0.002], [8, 8])
    queued = replace(look, item_queued_seconds=[0.002] * 16)
    crowded, own = (
        loading(case(training(), Inspection(loaders=[one]), **with_loader(workers=2)))
        for one in (look, queued)
    )
    assert crowded.items == pytest.approx(0.024) and own.items == pytest.approx(0.008)
    assert own.items_cpu == pytest.approx(0.004)


def test_putting_together_waits_for_a_core_as_items_do() -> None:
    look = LoaderLook(0, [0.003] * 16, [0.0025] * 16, [0.009, 0.002], [8, 8])
    told = replace(look, collate_queued_seconds=[0.008, 0.001])
    crowded, own = (
        loading(case(training(), Inspection(loaders=[one]), **with_loader(workers=2)))
        for one in (look, told)
    )
    assert crowded.collate == pytest.approx(0.0055) and own.collate == pytest.approx(0.001)


def test_what_a_loader_says_of_itself_is_believed() -> None:
    known = loading(case(training(), **with_loader(batches=7, prefetch=5)))
    assert (known.batches_a_pass, known.ahead, known.batches) == (7, 5, 1.0)
    unknown = loading(case(training(), **with_loader(batches=None, prefetch=None)))
    assert (unknown.batches_a_pass, unknown.ahead) == (None, 2)


def test_what_workers_have_made_must_still_be_received() -> None:
    load = Loading(0.060, 0.030, workers=4, cores=16, threads=1, collate=0.6, alone=0.01)
    assert load.saved_without(1.0) == pytest.approx(1 - 0.010 / 0.060)
    assert replace(load, handed=0.005).saved_without(1.0) == pytest.approx(1 - 0.015 / 0.060)
    # With a worker to come; until then it is part of the wait.
    alone = Loading(0.060, 0.030, workers=0, cores=16, threads=1, handed=0.005)
    assert alone.saved_without(1.0) == pytest.approx(0.5)


def test_receiving_is_counted_for_all_batches_of_a_step() -> None:
    look = LoaderLook(0, [0.001] * 16, [0.001] * 16, [0.002, 0.002], [8, 8])
    seen = Inspection(loaders=[look], handed_seconds=[0.001, 0.001, 0.5])
    assert loading(case(training(), seen, **with_loader(workers=2))).handed == pytest.approx(0.001)


def test_half_of_what_tells_two_processes_apart_is_believed() -> None:
    agrees = Loading(0.050, 0.040, workers=4, cores=16, threads=1, collate=0.2, alone=0.01)
    assert agrees.saved_without(1.0) == pytest.approx(1 - 0.010 / 0.050)
    # By what was seen a step takes 50 ms. The timed one was slower, and would be afterwards too.
    slower = replace(agrees, step=0.072, wait=0.062)
    assert slower.saved_without(1.0) == pytest.approx(1 - 0.012 / 0.072)
    assert slower.saved_with(8) == pytest.approx(1 - 0.025 * 1.2 / 0.072)
    # Workers that are kept: beside the start itself only half of what it is slower now.
    kept = math.sqrt(0.050 * (0.072 - 0.004))
    assert slower.saved_by_keeping_workers(0.004) == pytest.approx(1 - kept / 0.072)
    assert slower.saved_by_keeping_workers(0.022) == pytest.approx(0.022 / 0.072)
    far_off = replace(slower, step=0.200, wait=0.190)
    assert far_off.saved_by_keeping_workers(0.012) == pytest.approx(0.012 / 0.200)
    unseen = replace(slower, collate=0.0)
    assert unseen.saved_by_keeping_workers(0.004) == pytest.approx(0.004 / 0.072)
    # So far off that it says nothing.
    other = replace(agrees, step=0.200, wait=0.190)
    assert other.saved_without(1.0) == pytest.approx(1 - 0.010 / 0.200)
