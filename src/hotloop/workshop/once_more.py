"""When what came of a trial is as likely to be somebody else's doing as its plan's."""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.trial.trial import Trial

BY_CHANCE = ("SIGSEGV", "SIGBUS", "SIGABRT")
"""A compiler or a driver dies of these now and then. What does so every time does so twice."""
CROWDED = 0.2
"""Of the cores' time, beyond what others took beside the job as it is."""
MOST_CROWDED = 3
"""Where others have come to stay, another run is no better."""


def is_worth_another_run(trial: Trial, trials: Sequence[Trial]) -> bool:
    """Of one process of a plan, among all that were run, whose verdict nothing would revise."""
    if trial.signal in BY_CHANCE:
        return True
    if trial.purpose != "screen" or not _is_crowded(trial, trials[0]):
        return False
    screened = [each for each in trials if each.purpose == "screen"]
    return sum(_is_crowded(each, trials[0]) for each in screened) <= MOST_CROWDED


def _is_crowded(trial: Trial, usual: Trial) -> bool:
    one, other = trial.company, usual.company
    if one is None or other is None or not one.is_in_the_way:
        return False
    return one.taken - other.taken >= CROWDED
