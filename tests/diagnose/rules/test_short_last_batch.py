from __future__ import annotations

from typing import Any

import pytest

from hotloop.diagnose.base import Case
from hotloop.diagnose.rules.short_last_batch import short_last_batch
from hotloop.inspection import Inspection
from tests.builders import Log
from tests.diagnose.making import case, samples, users, with_loader

CALL = users(45, source="loss = criterion(model(x), y)")


def epochs(full: int, short_ms: float, n: int = 4, short: int = 1) -> Log:
    """Passes of so many full batches of 128 that take 10 ms, and one of n samples."""
    log = Log()
    for _ in range(60 // (full + 1)):
        for _ in range(full):
            log.data(0, 128).forward(4, 128).backward(4).optimizer(2)
        for _ in range(short):
            log.data(0, n).forward(short_ms - 6, n).backward(4).optimizer(2)
    return log


def varied() -> Log:
    """Batches of as many samples as there happen to be."""
    log = Log()
    for number in range(60):
        n = 100 + 7 * number % 29
        log.data(0, n).forward(4 + number % 3, n).backward(4).optimizer(2)
    return log


def two_at_first() -> Log:
    """As where a library loads a batch ahead: the first step of a pass has loaded two."""
    log = Log()
    for number in range(60):
        log.data(0, 16)
        if number % 20 == 0:
            log.data(0, 16)
        log.forward(4, 16).backward(4).optimizer(2)
    return log


def job(log: Log, **changes: Any) -> Case:
    settings = {"workers": 0, "samples": 132, "batch_size": 128} | changes
    seen = samples((2, 4, [CALL]), (6, 4, [CALL]))
    return case(log, Inspection(samples=seen), **with_loader(**settings))


def test_every_other_step_is_taken_for_four_samples() -> None:
    finding = short_last_batch(job(epochs(1, 8)))
    assert finding is not None and finding.places == (CALL,)
    # 132 samples in 18 ms, against 128 in 10.
    assert finding.share == pytest.approx(1 - (10 / 128) / (18 / 132), abs=0.01)
    assert "drop_last" in finding.remedy and any("by sample" in one for one in finding.evidence)


def test_another_shape_may_take_longer_by_far() -> None:
    finding = short_last_batch(job(epochs(9, 90), samples=9 * 128 + 4))
    assert finding is not None and finding.share == pytest.approx(0.5, abs=0.03)


def test_how_often_is_told_by_a_pass_and_not_by_how_many_were_seen() -> None:
    log = epochs(9, 90)
    for _ in range(9):
        log.data(0, 128).forward(4, 128).backward(4).optimizer(2)
    finding = short_last_batch(job(log, samples=9 * 128 + 4))
    assert finding is not None and finding.title.startswith("One step in 10 is taken for 4 ")


@pytest.mark.parametrize(
    "other",
    [
        job(epochs(1, 8), drop_last=True),
        job(epochs(1, 10, n=128), samples=256),
        job(epochs(29, 8), samples=29 * 128 + 4),
        job(epochs(1, 8), samples=None),
        case(epochs(1, 8)),
        job(varied()),
        job(two_at_first(), samples=600, batch_size=16),
    ],
    ids=["dropped", "it divides", "long passes", "unknown", "other data", "varied", "ahead"],
)
def test_it_says_nothing(other: Case) -> None:
    assert short_last_batch(other) is None
