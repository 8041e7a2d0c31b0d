"""What the rules about threads have in common."""

from __future__ import annotations

from hotloop.diagnose.base import Case
from hotloop.diagnose.call_sites import distinct
from hotloop.diagnose.sightings import innermost
from hotloop.inspection import Frame
from hotloop.timeline import Phase

SET = "set_num_threads"


def computing(case: Case) -> float:
    """The share of a step in which torch computes: threads do nothing for one that waits."""
    return case.share(Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)


def places(case: Case) -> tuple[Frame, ...]:
    """Where the number was set, if the script did that itself."""
    calls = case.inspection.calls if case.inspection else []
    lines = (innermost(call.stack) for call in calls if SET in call.what)
    return distinct(line for line in lines if line is not None)
