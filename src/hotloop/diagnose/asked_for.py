"""Work whose only use is that the CPU is told its result: a metric, a norm that is printed.

Where such a result is asked for less often, its computation goes too. The call that does nothing
else is the outermost one under which no operator was seen that the backward pass undoes.
"""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.diagnose.base import Case
from hotloop.diagnose.peaks import operators
from hotloop.diagnose.sightings import Sighting, sightings
from hotloop.inspection import Frame

Place = tuple[str, int]
TRAINING = ("backward", "step")
TORN = 0.05
"""Of what is seen under a line. A thread runs on while its stack is read, so that an outer frame
may already be at the next line: that little proves nothing."""


def asking_call(case: Case, stack: Sequence[Frame]) -> Place | None:
    """The line of that call. None: even the line that asks does work for the training."""
    trained, seen = _trained(case), sightings(case)
    found = None
    for frame in reversed([frame for frame in stack if frame.is_users]):
        place = frame.file, frame.line
        if place in trained or _does_training(_under(seen, place), trained):
            return found
        found = place
    return found


def seconds_under(case: Case, call: Place) -> float:
    """Of a step's time on the CPU, what this call takes, its waiting included.

    Meanwhile the CPU could have queued what comes next.
    """
    seen = sightings(case)
    whole = sum(sighting.seconds for sighting in seen)
    spent = sum(sighting.seconds for sighting in _under(seen, call))
    return spent / whole * case.figures.step.mean if whole else 0.0


def _trained(case: Case) -> set[Place]:
    counted = operators(case)
    lines = counted.lines if counted else []
    return {(line.place.file, line.place.line) for line in lines if line.backward_operators}


def _does_training(seen: list[Sighting], trained: set[Place]) -> bool:
    whole = sum(sighting.seconds for sighting in seen)
    part = sum(sighting.seconds for sighting in seen if _trains(sighting, trained))
    return part > TORN * whole


def _trains(sighting: Sighting, trained: set[Place]) -> bool:
    line = sighting.line
    at = (line.file, line.line) if line else None
    return at in trained or sighting.passes(*TRAINING)


def _under(seen: list[Sighting], place: Place) -> list[Sighting]:
    return [
        sighting
        for sighting in seen
        if any((frame.file, frame.line) == place for frame in sighting.stack)
    ]
