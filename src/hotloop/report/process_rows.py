"""What its processes say of a profile, as plain rows: how far apart they lie, and which failed."""

from __future__ import annotations

import statistics

from hotloop import units
from hotloop.figures import step_times
from hotloop.report import company_rows
from hotloop.study import Study
from hotloop.trial.trial import State

TIMED = ("", "repeat")


def processes(study: Study) -> tuple[float, ...]:
    """Seconds of a step, in each process that was timed to its end."""
    timed = [trial for trial in study.trials if trial.purpose in TIMED]
    complete = [trial.measurement for trial in timed if trial.state is State.COMPLETE]
    found = [step_times(measurement) for measurement in complete if measurement is not None]
    return tuple(times.step.mean for times in found if times is not None)


def facts(study: Study) -> tuple[tuple[str, str], ...]:
    return (*_apart(study), *company_rows.facts(study), *_not_seen(study))


def _apart(study: Study) -> tuple[tuple[str, str], ...]:
    seconds = processes(study)
    if len(seconds) < 2:
        return ()
    low, high = units.seconds(min(seconds)), units.seconds(max(seconds))
    mean = units.seconds(statistics.geometric_mean(seconds))
    return (("processes", f"{len(seconds)}: a step takes {mean}, from {low} to {high}"),)


def _not_seen(study: Study) -> tuple[tuple[str, str], ...]:
    """Why nothing is known of what only a run that is looked into shows."""
    looks = [trial for trial in study.trials if trial.purpose == "look"]
    if not looks or any(trial.inspection is not None for trial in looks):
        return ()
    return (("not seen", f"what the run that looks into it would show: {looks[-1].reason}"),)
