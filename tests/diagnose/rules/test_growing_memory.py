from __future__ import annotations

import random

import pytest

from hotloop.diagnose.base import Case
from hotloop.diagnose.rules.growing_memory import growing_memory
from hotloop.inspection import Inspection
from tests.builders import Log
from tests.diagnose.making import case

MIB = 2**20


def job(host: list[float], device: list[float] | None = None, log: Log | None = None) -> Case:
    inspection = Inspection(
        steps=len(host),
        host_bytes=[round(one * MIB) for one in host],
        device_bytes=[round(one * MIB) for one in device or []],
    )
    return case(log, inspection)


def slowing(by: float) -> Log:
    """Steps that take this many milliseconds longer from one to the next."""
    log = Log()
    for number in range(60):
        log.data(1, 8).forward(5 + by * number, 8).backward(8).optimizer(6)
    return log


def test_every_step_keeps_what_it_made() -> None:
    finding = growing_memory(job([500 + 10.5 * i for i in range(40)]))
    assert finding is not None
    assert finding.title.startswith("Memory on the host grows by 10.5 MiB a step")
    # 2,688 new pages a step of 20 ms.
    assert finding.is_limit and finding.share == pytest.approx(2688 * 0.7e-6 / 0.02, rel=0.02)


def test_little_by_little_it_is_a_remark() -> None:
    finding = growing_memory(job([500 + i for i in range(40)]))
    assert finding is not None and not finding.is_limit and finding.share == 0.0


def test_a_step_that_takes_longer_and_longer() -> None:
    finding = growing_memory(job([500 + i for i in range(40)], log=slowing(0.5)))
    assert finding is not None and finding.is_limit
    assert finding.share == pytest.approx(0.5 * 58 / 2 / (20 + 15), rel=0.1)


def test_the_gpus_memory_is_known_to_the_byte() -> None:
    finding = growing_memory(job([500] * 40, device=[100 + 0.1 * i for i in range(40)]))
    assert finding is not None and "on the GPU" in finding.title


@pytest.mark.parametrize(
    "host",
    [
        [500 + 100 * (i > 3) for i in range(40)],
        [500 + min(i, 12) * 10 for i in range(40)],
        [500 + random.Random(i).uniform(0, 100) for i in range(40)],
        [500 + i * 0.1 for i in range(40)],
        [500, 540, 580],
        [],
    ],
    ids=["a jump", "until it is full", "noise", "next to nothing", "too few", "unknown"],
)
def test_what_does_not_keep_growing(host: list[float]) -> None:
    assert growing_memory(job(host)) is None


def test_nobody_looked() -> None:
    assert growing_memory(case()) is None
