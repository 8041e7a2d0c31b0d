from __future__ import annotations

import pytest

from hotloop.plan import Plan
from hotloop.report.outlook_rows import outlook_rows
from hotloop.search.climb import Candidate
from hotloop.study import Found, Options
from hotloop.trial.trial import State
from tests.report.studies import failed, searched, timed, won


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


MEMORY = Found(
    Options(objective="memory"),
    (Candidate("chunked_loss", ({},), 0.3), Candidate("bf16", ({},), 0.2)),
)


def test_of_an_optimisation_of_memory_it_is_memory_that_is_saved() -> None:
    found = outlook_rows(searched(MEMORY, timed("baseline", Plan(), 20)), (1, 2), (1.0, 2.0))
    assert found.worth == (
        ("chunked_loss", "30.0% of its memory, at the very most"),
        ("bf16", "20.0% of a step's time, at the very most"),
    )


def test_of_a_job_that_died_nothing_is_promised() -> None:
    starved = failed("baseline", Plan(), state=State.OUT_OF_MEMORY)
    found = outlook_rows(searched(MEMORY, starved), (1, 2), (1.0, 2.0))
    assert {text for _, text in found.worth} == {"it may make the job fit into memory"}
