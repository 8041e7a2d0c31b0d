"""The two sides that a report lays beside each other: the job as it is, and under the plan."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.plan import Plan
from hotloop.report.plan_words import NOTHING, plan_words
from hotloop.report.search_figures import middle_trial
from hotloop.study import Study
from hotloop.trial.trial import State, Trial

UNDER_THE_PLAN = "under the plan"


@dataclass(frozen=True)
class Side:
    label: str
    trial: Trial
    """The process that stands for all that were timed so."""


def sides(study: Study) -> tuple[Side, ...]:
    """None, one or both: what was never measured has no side."""
    if study.found is None:
        return _profiled(study)
    before = middle_trial(study, Plan())
    after = middle_trial(study, study.found.plan) if study.found.plan else None
    found = ((NOTHING, before), (UNDER_THE_PLAN, after))
    return tuple(Side(label, trial) for label, trial in found if trial is not None)


def _profiled(study: Study) -> tuple[Side, ...]:
    """A profile times its first trial, and only that."""
    for trial in study.trials[:1]:
        if trial.state is State.COMPLETE and trial.measurement is not None:
            return (Side(plan_words(trial.plan), trial),)
    return ()
