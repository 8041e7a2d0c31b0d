from __future__ import annotations

from dataclasses import replace

from hotloop.inspection import Inspection
from hotloop.report.process_rows import facts
from hotloop.trial.trial import State
from tests import builders
from tests.report.studies import searched

TIMED = builders.trial(purpose="")
FAILED = builders.trial(
    purpose="look", state=State.CRASHED, reason="The script was killed by SIGKILL."
)


def test_a_look_that_failed_is_told_with_its_reason() -> None:
    ((label, text),) = facts(searched(None, TIMED, FAILED))
    assert label == "not seen" and text.endswith("would show: The script was killed by SIGKILL.")


def test_one_that_showed_something_is_not() -> None:
    seen = replace(FAILED, inspection=Inspection())
    assert facts(searched(None, TIMED, seen)) == ()
    assert facts(searched(None, TIMED, seen, FAILED)) == ()
    assert facts(searched(None, TIMED)) == ()
