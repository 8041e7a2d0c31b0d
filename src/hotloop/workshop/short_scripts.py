"""Looking into a script that ended before all of it had been seen: once more, in fewer steps."""

from __future__ import annotations

from hotloop import timeline
from hotloop.trial.spec import Look
from hotloop.trial.trial import Trial

FEWEST = 12
"""Steps. In fewer there is no room for every kind of looking."""


def another_look(trial: Trial) -> Look | None:
    """How to look again so that operators are counted, too, before the script is over.

    None where they have been counted, where the script was not what ended the trial, or where it
    is too short for anything else.
    """
    inspection, measurement = trial.inspection, trial.measurement
    if inspection is None or inspection.operators is not None:
        return None
    if not trial.ran_out or measurement is None:
        return None
    made = len(timeline.step_ends(measurement.events))
    if made < FEWEST:
        return None
    usual, quarter = Look(), made // 4
    return Look(
        warm_up=min(usual.warm_up, quarter),
        steps=quarter,
        seconds=0.0,
        profiled_steps=min(usual.profiled_steps, quarter // 3),
        held_steps=min(usual.held_steps, quarter // 3),
        kept_passes=0,
        tried_steps=0,
    )
