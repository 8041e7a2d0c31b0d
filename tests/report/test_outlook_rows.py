from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.diagnose.diagnosis import Diagnosis
from hotloop.diagnose.numbers import Numbers
from hotloop.plan import Plan
from hotloop.report.outlook_rows import outlook_rows
from hotloop.search.candidate import Candidate
from hotloop.study import Found, Options
from hotloop.trial.trial import State
from hotloop.workshop.watching import Outlook
from tests.report.studies import failed, lost, searched, timed, won


@pytest.mark.parametrize(
    ("runs", "seconds", "sentence"),
    [
        ((12, 30), (300.0, 900.0), "12 to 30 runs of the script: 5.0 min to 15.0 min."),
        ((12, 12), (300.0, 300.0), "12 runs of the script: 5.0 min."),
    ],
)
def test_how_many_runs_and_how_long(
    runs: tuple[int, int], seconds: tuple[float, float], sentence: str
) -> None:
    told = outlook_rows(won(), Outlook(runs, seconds)).sentence
    assert told == f"The search takes about {sentence}"


def test_a_budget_that_is_shorter_is_named() -> None:
    def told(budget: float) -> str:
        options = Options(budget=budget)
        return outlook_rows(won(options=options), Outlook((12, 30), (300.0, 900.0), 400.0)).sentence

    assert told(600.0).endswith("5.0 min to 15.0 min, of which --budget grants 10.0 min.")
    assert told(900.0).endswith("5.0 min to 15.0 min.")


def test_a_budget_that_cannot_do_is_said_to_be_too_small() -> None:
    options = Options(budget=120.0)
    told = outlook_rows(won(options=options), Outlook((12, 30), (300.0, 900.0), 390.0)).sentence
    assert told.endswith("2.0 min: that may be too little for a proof, which takes about 6.5 min.")


def test_where_nothing_could_help_there_is_no_search() -> None:
    assert outlook_rows(lost(), Outlook((1, 1), (3.0, 3.0))).sentence == "There is nothing to try."


def test_what_limits_the_job_is_said_where_it_was_looked_into() -> None:
    assert outlook_rows(won(), Outlook((1, 2), (1.0, 2.0))).limit == ""
    looked = replace(won(), diagnosis=Diagnosis("It waits.", (), (), Numbers()))
    assert outlook_rows(looked, Outlook((1, 2), (1.0, 2.0))).limit == "It waits."


def test_or_that_there_is_no_time_to_look() -> None:
    options = Options(look=True, budget=120.0)
    told = outlook_rows(won(options=options), Outlook((1, 2), (1.0, 2.0))).limit
    assert told == "not known: a --budget of 2.0 min leaves no time to look for it."
    in_vain = searched(won(options=options).found, timed("look", Plan(), 20))
    assert outlook_rows(in_vain, Outlook((1, 2), (1.0, 2.0))).limit == ""


def test_what_could_help_and_what_is_not_tried() -> None:
    found = outlook_rows(won(), Outlook((1, 2), (1.0, 2.0)))
    assert found.worth[0] == ("bf16", "may save 30.0% of a step's time at the very most")
    assert found.refused == (("pin_memory", "there is no GPU to copy to"),)


def test_what_may_be_tried_later_is_told_with_when() -> None:
    small = Candidate("fused_optimizer", ({},), 0.006, worth_from=8.3)
    found = outlook_rows(won(candidates=(small,)), Outlook((1, 2), (1.0, 2.0)))
    assert found.worth == ()
    assert found.refused[-1] == (
        "fused_optimizer",
        "it could win 0.6% of a step at the very most, unless the job becomes 8.3× as fast",
    )


def test_a_study_without_findings_promises_nothing() -> None:
    found = outlook_rows(searched(None), Outlook((1, 2), (1.0, 2.0)))
    assert (found.worth, found.refused) == ((), ())


MEMORY = Found(
    Options(objective="memory"),
    (Candidate("chunked_loss", ({},), 0.3), Candidate("bf16", ({},), 0.0)),
)


def test_of_an_optimisation_of_memory_it_is_memory_that_is_saved() -> None:
    found = outlook_rows(
        searched(MEMORY, timed("baseline", Plan(), 20)), Outlook((1, 2), (1.0, 2.0))
    )
    assert found.worth == (
        ("chunked_loss", "may save 30.0% of its memory at the very most"),
        ("bf16", "may take less memory by the way: how much is not known beforehand"),
    )


def test_of_a_job_that_died_nothing_is_promised() -> None:
    starved = failed("baseline", Plan(), state=State.OUT_OF_MEMORY)
    found = outlook_rows(searched(MEMORY, starved), Outlook((1, 2), (1.0, 2.0)))
    assert {text for _, text in found.worth} == {"it may make the job fit into memory"}
