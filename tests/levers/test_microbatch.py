"""Passes of another size, and the same gradients. How they are gathered: test_gathering."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from hotloop.levers.base import Effect, Lever, Seen
from hotloop.levers.microbatch import Microbatch
from hotloop.measurement import LoopSeen, ModelSeen

CASES = 12
MODEL = ModelSeen("Net", 9, 9, ["float32"], ["cpu"], False, False, 1)


def trained(jobs: Any, kind: Any, *levers: Lever, **settings: Any) -> Any:
    from hotloop.runtime.owned.loop import Loop

    job = kind()
    for name, value in settings.items():
        setattr(job, name, value)
    with jobs.under(*levers):
        return Loop(jobs.torch, job).train()


@pytest.mark.parametrize("case", range(CASES))
@pytest.mark.parametrize("kind", ["Plain", "Tokens"])
def test_the_same_training_in_whatever_passes(kind: str, case: int, jobs: Any, owned: Any) -> None:
    """Batches, passes, the short last batch (of 50 samples) and token weights, at random."""
    draw = random.Random(case)
    batch = draw.randint(1, 60)
    before, size = draw.randint(1, batch), draw.randint(1, batch)
    job = getattr(owned, kind)
    settings = {"batch_size": batch, "microbatch": before, "epochs": 1, "seed": case}
    plain = owned.weights(trained(jobs, job, **settings))
    lever = Microbatch(size)
    planned = owned.weights(trained(jobs, job, lever, **settings))
    for one, other in zip(plain, planned, strict=True):
        jobs.torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)
    assert lever.receipt().applied == (before != size)


@pytest.mark.parametrize(("size", "passes"), [(0, 1), (4, 2), (3, 3), (100, 1)])
def test_passes_are_counted(size: int, passes: int, jobs: Any, owned: Any) -> None:
    lever = Microbatch(size)
    trained(jobs, owned.Plain, lever, microbatch=2, drop_last=True)
    receipt = lever.receipt()
    assert receipt.applied
    assert receipt.evidence["passes_a_step"] == passes
    assert receipt.evidence["samples_before"] == 2


def test_what_the_job_does_itself_is_not_claimed(jobs: Any, owned: Any) -> None:
    lever = Microbatch(0)
    trained(jobs, owned.Plain, lever)
    assert lever.receipt().reason == "the job takes passes of 8 samples by itself"


def test_a_scripts_own_loop_is_left_alone(jobs: Any) -> None:
    plain = jobs.train()
    lever = Microbatch(2)
    with jobs.under(lever):
        assert jobs.train() == plain
    assert lever.receipt().reason == "the loop is the script's own"


def test_batch_norm_would_notice(jobs: Any, owned: Any) -> None:
    """Why it counts as changing the training there."""

    class Normed(owned.Plain):  # type: ignore[misc]
        def model(self) -> Any:
            nn = jobs.torch.nn
            return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))

    whole, split = (
        owned.weights(trained(jobs, Normed, *levers)) for levers in ((), (Microbatch(4),))
    )
    assert not jobs.torch.allclose(whole[0], split[0], rtol=1e-2)


def seen(jobs: Any, loop: LoopSeen | None, batch_norms: int = 0, objective: str = "speed") -> Seen:
    models = [replace(MODEL, batch_norms=batch_norms)]
    made: Seen = jobs.seen(loop=loop, models=models)
    return replace(made, objective=objective)


@pytest.mark.parametrize(
    ("loop", "objective", "sizes"),
    [
        (LoopSeen(2048, 32), "speed", [0, 256]),
        (LoopSeen(8, 4), "speed", [0, 6]),
        (LoopSeen(2, 1), "speed", [0]),
        (LoopSeen(64, 64), "memory", [32, 16, 8]),
        (LoopSeen(64, 2), "memory", [1]),
    ],
)
def test_sizes_to_try(loop: LoopSeen, objective: str, sizes: list[int], jobs: Any) -> None:
    known = seen(jobs, loop, objective=objective)
    assert [setting["size"] for setting in Microbatch.settings(known)] == sizes
    assert Microbatch.expected(known).is_worth_trying


def test_the_smallest_pass_is_the_most_that_memory_may_fall(jobs: Any) -> None:
    of_many = Microbatch.expected(seen(jobs, LoopSeen(64, 64), objective="memory"))
    assert of_many.of_memory and of_many.share == pytest.approx(7 / 8)
    of_two = Microbatch.expected(seen(jobs, LoopSeen(64, 2), objective="memory"))
    assert of_two.share == pytest.approx(1 / 2)


@pytest.mark.parametrize(
    ("loop", "objective", "reason"),
    [
        (None, "speed", "only a loop of hotloop's own"),
        (LoopSeen(64, 64), "speed", "a single pass already"),
        (LoopSeen(64, 1), "memory", "a single sample already"),
    ],
)
def test_where_there_is_nothing_to_win(
    loop: LoopSeen | None, objective: str, reason: str, jobs: Any
) -> None:
    assert reason in Microbatch.expected(seen(jobs, loop, objective=objective)).reason


def test_with_batch_norm_it_changes_the_training(jobs: Any) -> None:
    plain, normed = (seen(jobs, LoopSeen(8, 2), count) for count in (0, 3))
    assert Microbatch.effect_on(plain) == (Effect.SAME_MATH, "")
    effect, why = Microbatch.effect_on(normed)
    assert effect is Effect.CHANGES_TRAINING and "batch norm" in why


def test_a_size_below_nothing() -> None:
    assert "at least 0" in Microbatch(-1).problem()
