from __future__ import annotations

import pytest

from hotloop.report.outlook_rows import outlook_rows
from tests.report.studies import searched, won


@pytest.mark.parametrize(
    ("runs", "seconds", "sentence"),
    [
        ((12, 30), (300.0, 900.0), "About 12 to 30 runs of the script, 5.0 min to 15.0 min."),
        ((12, 12), (300.0, 300.0), "About 12 runs of the script, 5.0 min."),
    ],
)
def test_how_many_runs_and_how_long(
    runs: tuple[int, int], seconds: tuple[float, float], sentence: str
) -> None:
    assert outlook_rows(won(), runs, seconds).sentence == sentence


def test_what_could_help_and_what_is_not_tried() -> None:
    found = outlook_rows(won(), (1, 2), (1.0, 2.0))
    assert found.worth[0] == ("bf16", "30.0% of a step's time, at the very most")
    assert found.refused == (("pin_memory", "there is no GPU to copy to"),)


def test_a_study_without_findings_promises_nothing() -> None:
    found = outlook_rows(searched(None), (1, 2), (1.0, 2.0))
    assert (found.worth, found.refused) == ((), ())
