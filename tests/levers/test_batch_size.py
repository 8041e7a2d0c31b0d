from __future__ import annotations

from typing import Any

import pytest

from hotloop.levers.base import Seen
from hotloop.levers.batch_size import BatchSize
from hotloop.levers.microbatch import Microbatch
from hotloop.measurement import LoopSeen
from tests.levers.test_microbatch import trained


def test_steps_of_another_size(jobs: Any, owned: Any) -> None:
    lever = BatchSize(16)
    planned = trained(jobs, owned.Plain, lever)
    plain = trained(jobs, owned.Plain, batch_size=16)
    assert [epoch.steps for epoch in planned.epochs] == [4, 4]
    for one, other in zip(owned.weights(planned), owned.weights(plain), strict=True):
        assert jobs.torch.equal(one, other)
    receipt = lever.receipt()
    assert receipt.applied
    assert (receipt.evidence["samples"], receipt.evidence["samples_before"]) == (16, 8)


@pytest.mark.parametrize(("microbatch", "passes"), [(0, 1), (8, 1), (4, 4)])
def test_passes_stay_as_large_as_they_are(
    microbatch: int,
    passes: int,
    jobs: Any,
    owned: Any,
) -> None:
    counter = Counted()
    trained(jobs, owned.Plain, BatchSize(16), counter, microbatch=microbatch, drop_last=True)
    assert counter.passes == passes * counter.steps


class Counted(BatchSize):
    """Changes nothing, and counts."""

    passes = steps = 0

    def apply(self, torch: Any, seams: Any) -> None:
        seams.backward.after.append(lambda *_: setattr(self, "passes", self.passes + 1))
        seams.step.after.append(lambda *_: setattr(self, "steps", self.steps + 1))


def test_together_with_microbatches(jobs: Any, owned: Any) -> None:
    """In the order of the registry: the whole batch is then the larger one."""
    size, whole = BatchSize(24), Microbatch(0)
    trained(jobs, owned.Plain, size, whole, microbatch=2)
    assert whole.receipt().evidence["samples"] == 24


@pytest.mark.parametrize("size", [0, 8])
def test_what_the_job_does_itself_is_not_claimed(size: int, jobs: Any, owned: Any) -> None:
    lever = BatchSize(size)
    trained(jobs, owned.Plain, lever)
    assert lever.receipt().reason == "the job has batches of 8 samples by itself"


def test_a_scripts_own_loop_is_left_alone(jobs: Any) -> None:
    plain = jobs.train()
    lever = BatchSize(2)
    with jobs.under(lever):
        assert jobs.train() == plain
    assert lever.receipt().reason == "the loop is the script's own"


def seen(jobs: Any, loop: LoopSeen | None) -> Seen:
    made: Seen = jobs.seen(loop=loop)
    return made


def test_begins_by_doubling(jobs: Any) -> None:
    known = seen(jobs, LoopSeen(8, 8))
    assert BatchSize.expected(known).is_worth_trying
    assert BatchSize.settings(known) == [{"size": 16}]


@pytest.mark.parametrize(
    ("loop", "reason"),
    [
        (None, "only a loop of hotloop's own"),
        (LoopSeen(8, 8, resizable=False), "makes its own batches"),
        (LoopSeen(10**6, 8), "are one batch already"),
    ],
)
def test_where_there_is_nothing_to_try(loop: LoopSeen | None, reason: str, jobs: Any) -> None:
    assert reason in BatchSize.expected(seen(jobs, loop)).reason


def test_a_size_below_nothing() -> None:
    assert "at least 0" in BatchSize(-1).problem()
