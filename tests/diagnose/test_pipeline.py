from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.diagnose.pipeline import Pipeline

ROOMY = Pipeline(own=2.0, threads=1, handed=0.0, work=8.0, on_core=1.0, workers=2, cores=8)


def test_whoever_is_slowest_sets_the_pace() -> None:
    assert ROOMY.seconds() == pytest.approx(4.0)  # 8 s of two workers
    assert replace(ROOMY, workers=4).seconds() == pytest.approx(2.0)
    assert replace(ROOMY, workers=8).seconds() == pytest.approx(2.0)  # the training's own
    assert replace(ROOMY, work=0.0).seconds() == pytest.approx(2.0)


def test_receiving_a_batch_is_work_of_the_training() -> None:
    assert replace(ROOMY, workers=8, handed=0.5).seconds() == pytest.approx(2.5)


def test_a_pass_begins_with_nothing_loaded() -> None:
    # Two batches after 8 s, two after 16, and then a step each.
    assert replace(ROOMY, batches_a_pass=4).seconds() == pytest.approx((16 + 2 * 2) / 4)
    assert replace(ROOMY, batches_a_pass=1).seconds() == pytest.approx(8 + 2)
    assert replace(ROOMY, batches_a_pass=1000).seconds() == pytest.approx(4.0)


def test_workers_are_only_so_far_ahead() -> None:
    slow = replace(ROOMY, own=20.0, batches_a_pass=4)
    assert slow.seconds() == pytest.approx((8 + 4 * 20) / 4)
    # One at a time: the next is begun once the one before is taken.
    one = replace(ROOMY, workers=1, own=6.0, batches_a_pass=3, ahead=1)
    assert one.seconds() == pytest.approx((8 + 8 + 8 + 6) / 3)


def test_one_core_does_everything_by_turns() -> None:
    alone = replace(ROOMY, cores=1, workers=1)
    assert alone.seconds() == pytest.approx(10.0)


def test_what_waits_for_a_disk_takes_no_core() -> None:
    alone = replace(ROOMY, cores=1, workers=4, on_core=0.0)
    assert alone.seconds() == pytest.approx(2.0)


def test_threads_that_wait_for_each_other_lose_more_than_their_share() -> None:
    crowded = Pipeline(own=1.0, threads=2, handed=0.0, work=100.0, on_core=1.0, workers=2, cores=2)
    one = replace(crowded, threads=1, own=2.0)
    # As much to do as one thread has, and longer at it: the cores are the workers' meanwhile.
    assert crowded.seconds() == pytest.approx(50.0 + 2.0)
    assert one.seconds() < crowded.seconds()
