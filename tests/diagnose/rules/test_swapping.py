from __future__ import annotations

import pytest

from hotloop.diagnose.rules.swapping import swapping
from hotloop.inspection import Inspection
from tests.diagnose.making import case

GIB = 2**30


def test_pages_are_read_back_at_every_step() -> None:
    finding = swapping(case(inspection=Inspection(steps=20, major_faults=2000, swapped=2 * GIB)))
    assert finding is not None and finding.is_limit
    # A hundred pages of 100 µs, in a step of 20 ms.
    assert finding.share == pytest.approx(0.5)
    assert finding.title == "2.0 GiB of the job's memory lie on a disk"


def test_what_nobody_asks_for_again_is_a_remark() -> None:
    finding = swapping(case(inspection=Inspection(steps=20, major_faults=3, swapped=2 * GIB)))
    assert finding is not None and not finding.is_limit and finding.share == 0.0


@pytest.mark.parametrize("swapped", [None, 0, 2**20])
def test_pages_of_files_are_no_swapping(swapped: int | None) -> None:
    inspection = Inspection(steps=20, major_faults=10_000, swapped=swapped)
    assert swapping(case(inspection=inspection)) is None


def test_nobody_looked() -> None:
    assert swapping(case()) is None
