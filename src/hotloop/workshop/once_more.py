"""When what came of a trial is as likely to be somebody else's doing as its plan's."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hotloop.search.climb import CROWDED
from hotloop.trial.trial import Trial

BY_CHANCE = ("SIGSEGV", "SIGBUS", "SIGABRT")
"""A compiler or a driver dies of these now and then. What does so every time does so twice."""
MOST_CROWDED = 3
"""Times that others came. Where they come and go all the time, another run is no better."""


def is_worth_another_run(trial: Trial, trials: Sequence[Trial]) -> bool:
    """`trials`: all that were run, this one last. Others may have come for a moment only."""
    if trial.signal in BY_CHANCE:
        return True
    crowds = [each.company.crowd for each in trials if each.company is not None]
    rises = [now - before >= CROWDED for before, now in pairwise(crowds)]
    is_new = trial.purpose == "screen" and trial.company is not None and rises[-1:] == [True]
    return is_new and sum(rises) <= MOST_CROWDED
