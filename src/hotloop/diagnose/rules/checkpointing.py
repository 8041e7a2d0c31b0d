"""Saving takes much of the run."""

from __future__ import annotations

from hotloop import timeline
from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.call_sites import dearest_calls, dearest_lines, distinct
from hotloop.diagnose.checkpoints import is_saving
from hotloop.diagnose.sightings import of_a_step, sightings
from hotloop.diagnose.steady import step_ends
from hotloop.diagnose.wording import percent, seconds, times
from hotloop.inspection import Call, Frame
from hotloop.timeline import Phase

SAVING = "torch.save"
BETWEEN = (Phase.DATA, Phase.REST, Phase.OPTIMIZER, Phase.EVALUATION)
"""Phases in which a script saves: between two steps, whatever that passes for."""


def checkpointing(case: Case) -> Finding | None:
    calls = _calls(case)
    by_calls, by_sight = _by_calls(case, calls), _by_sight(case)
    spent = max(by_calls, by_sight)
    if spent < LEAST_SHARE:
        return None
    return Finding(
        rule="checkpointing",
        title=f"{percent(spent)} of the run's time goes to saving",
        share=spent,
        remedy="Save less often, or from a thread of its own.",
        effort=Effort.SETTING,
        evidence=_evidence(case, calls if by_calls == spent else []),
        places=_places(case, calls),
    )


def _calls(case: Case) -> list[Call]:
    """Those that come again: some scripts save once, before they begin."""
    if case.inspection is None or case.looked is None:
        return []
    first = next(iter(step_ends(case.looked.events)), 0)
    found = [call for call in case.inspection.calls if call.what == SAVING]
    return [call for call in found if call.time_ns >= first]


def _by_calls(case: Case, calls: list[Call]) -> float:
    """Of the run, as far as the timed trial has time for it between its steps."""
    if not calls or case.looked is None:
        return 0.0
    a_step = sum(call.seconds for call in calls) / len(step_ends(case.looked.events))
    timed = timeline.steps(case.measurement.events)[1:]
    whole = sum(step.seconds + step.evaluation for step in timed) / len(timed)
    return min(a_step / whole, _room(case))


def _room(case: Case) -> float:
    paused = case.figures.pauses.share_of_run
    return case.share(*BETWEEN) * (1 - paused) + paused


def _by_sight(case: Case) -> float:
    """What saves without torch: by how often a thread was seen at it."""
    return of_a_step(case, sightings(case), is_saving, BETWEEN)


def _evidence(case: Case, calls: list[Call]) -> tuple[str, ...]:
    rule = "the share is of the run that was timed, not of a step"
    if not calls or case.inspection is None:
        return (rule,)
    steps = len(step_ends(case.looked.events)) if case.looked else case.inspection.steps
    each = sum(call.seconds for call in calls) / len(calls)
    return (
        f"it saves every {times(steps / len(calls), 'step')}, for {seconds(each)}; a step takes "
        f"{seconds(case.figures.step.mean)}",
        rule,
    )


def _places(case: Case, calls: list[Call]) -> tuple[Frame, ...]:
    return distinct([*dearest_calls(calls), *dearest_lines(sightings(case), is_saving)])
