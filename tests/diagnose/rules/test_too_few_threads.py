from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hotloop.diagnose.rules.too_few_threads import too_few_threads
from hotloop.inspection import Call, Inspection
from hotloop.levers.threads import PARALLEL
from hotloop.measurement import Software
from tests.builders import Log, loader
from tests.diagnose.making import case, operator_line, operators, users

SET = users(3, source="torch.set_num_threads(1)")
ALONE = [loader(workers=0)]


def computes(ms: float = 20.0) -> Log:
    log = Log()
    for _ in range(20):
        log.data(20 - ms, 8).forward(ms / 2, 8).backward(ms / 2).optimizer(0)
    return log


def test_one_thread_on_two_cores() -> None:
    inspection = Inspection(calls=[Call("set_num_threads", [SET], 0, 0.0)])
    finding = too_few_threads(case(computes(), inspection, threads=1, loaders=ALONE))
    assert finding is not None and finding.places == (SET,)
    # By the roof, products are twice as fast on both cores.
    assert finding.share == pytest.approx(PARALLEL / 2)
    assert any("assumed" in line for line in finding.evidence)


def test_threads_do_nothing_for_a_job_that_waits() -> None:
    assert too_few_threads(case(computes(2), threads=1, loaders=ALONE)) is None


def test_without_a_roof_a_core_is_assumed_to_add_most_of_one() -> None:
    finding = too_few_threads(case(computes(), roof=None, cores=4, threads=1, loaders=ALONE))
    assert finding is not None
    assert finding.share == pytest.approx(PARALLEL * (1 - 1 / 3.4))


def test_a_roof_that_something_else_disturbed_tells_nothing() -> None:
    made = case(computes(), threads=1, loaders=ALONE)
    assert made.roof is not None
    spoilt = replace(made.roof, cpu_matrix_flops_one_thread=200e9)
    finding = too_few_threads(replace(made, roof=spoilt))
    assert finding is not None and finding.share == pytest.approx(PARALLEL * (1 - 1 / 1.8))


def counted(**line: Any) -> Inspection:
    """The operators of a step, all from one line."""
    return Inspection(operators=operators(operator_line(users(9), 100, **line)))


def test_tiny_operators_have_nothing_to_share() -> None:
    tiny = counted(elements=4096, flops=200 * 1e5)
    assert too_few_threads(case(computes(), tiny, threads=1, loaders=ALONE)) is None


@pytest.mark.parametrize("large", [{"elements": 10**6}, {"elements": 16, "flops": 200 * 1e8}])
def test_large_ones_do(large: dict[str, Any]) -> None:
    finding = too_few_threads(case(computes(), counted(**large), threads=1, loaders=ALONE))
    assert finding is not None and finding.share == pytest.approx(PARALLEL / 2)


def test_every_core_has_its_thread() -> None:
    assert too_few_threads(case(computes(), threads=2, loaders=ALONE)) is None


def test_workers_want_cores_too() -> None:
    assert too_few_threads(case(computes(), threads=1, loaders=[loader(workers=1)])) is None


def test_a_gpu_does_the_computing() -> None:
    made = case(computes(), threads=1, loaders=ALONE)
    on_gpu = replace(made.measurement, software=Software(device="NVIDIA H200"))
    assert too_few_threads(replace(made, measurement=on_gpu)) is None
