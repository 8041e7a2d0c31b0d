from __future__ import annotations

from hotloop.report import process_rows, search_rows
from hotloop.report.company_rows import facts
from hotloop.study import Found, Options
from hotloop.trial.company import Company
from tests import builders
from tests.report.studies import searched

ALONE = builders.trial(company=Company(others=0.02, stolen=0.0, idle=0.0))
BESIDE = builders.trial(company=Company(others=0.48, stolen=0.01, idle=0.05))
STOLEN = builders.trial(company=Company(others=0.08, stolen=0.3, idle=0.0))
ROOMY = builders.trial(company=Company(others=0.4, stolen=0.0, idle=0.5))
UNKNOWN = builders.trial()


def test_a_run_beside_other_work_is_said_to_be_one() -> None:
    said = "other programs took 48% of the cores' time, so times are too long and wander"
    assert facts(searched(None, BESIDE)) == (("beside it", said),)
    assert facts(searched(None, BESIDE)) == process_rows.facts(searched(None, BESIDE))


def test_whoever_took_most_is_named_first() -> None:
    ((_, said),) = facts(searched(None, STOLEN))
    assert said.startswith("other virtual machines took 30% of the cores' time, other programs 8%")


def test_of_several_runs_how_many() -> None:
    ((_, said),) = facts(searched(None, ALONE, BESIDE, STOLEN, UNKNOWN))
    assert said.startswith("during 2 of 3 timed runs other programs took 28% of the cores' time")
    assert said.endswith("so intervals are wide and small gains are missed")


def test_a_few_runs_among_many_are_not_worth_a_word() -> None:
    assert facts(searched(None, BESIDE, *[ALONE] * 4)) == ()


def test_nothing_is_said_of_a_machine_with_room_or_that_does_not_tell() -> None:
    assert facts(searched(None, ALONE)) == ()
    assert facts(searched(None, ROOMY)) == ()
    assert facts(searched(None, UNKNOWN)) == ()


def test_a_search_says_it_too() -> None:
    rows = search_rows.rows(searched(Found(Options(), verdict="Nothing was found."), BESIDE))
    assert "beside it" in dict(rows.facts)
