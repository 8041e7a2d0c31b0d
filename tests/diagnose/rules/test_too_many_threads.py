from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.diagnose.rules.too_many_threads import too_many_threads
from hotloop.inspection import Call, Inspection
from hotloop.levers.threads import LOST
from hotloop.measurement import Software
from hotloop.tried import ThreadsTried
from tests.diagnose.making import case, users
from tests.diagnose.rules.test_too_few_threads import computes

SET = users(3, source="torch.set_num_threads(16)")


def test_eight_threads_a_core() -> None:
    inspection = Inspection(calls=[Call("set_num_threads", [SET], 0, 0.0)])
    finding = too_many_threads(case(computes(), inspection, threads=16))
    assert finding is not None and finding.places == (SET,)
    assert finding.share == pytest.approx(LOST * 7 / 8)
    assert finding.levers == ("threads",)
    assert any("assumed" in line for line in finding.evidence)


def test_what_was_tried_is_believed() -> None:
    tried = Inspection(threads_tried=ThreadsTried(2, seconds=0.04, own_seconds=0.1))
    finding = too_many_threads(case(computes(), tried, threads=16))
    assert finding is not None and finding.share == pytest.approx(0.6)
    assert "40.0 ms with 2 threads, and 100.0 ms as it is" in finding.evidence[1]
    in_vain = Inspection(threads_tried=ThreadsTried(2, seconds=0.1, own_seconds=0.1))
    assert too_many_threads(case(computes(), in_vain, threads=16)) is None


@pytest.mark.parametrize("threads", [0, 1, 2])
def test_a_thread_a_core_is_right(threads: int) -> None:
    assert too_many_threads(case(computes(), threads=threads)) is None


def test_a_job_that_waits_loses_nothing_by_it() -> None:
    assert too_many_threads(case(computes(1), threads=16)) is None


def test_a_gpu_does_the_computing() -> None:
    made = case(computes(), threads=16)
    on_gpu = replace(made.measurement, software=Software(device="NVIDIA H200"))
    assert too_many_threads(replace(made, measurement=on_gpu)) is None
