"""About how many runs of the script a search will take, and how many of them come at its end."""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.figures import figures
from hotloop.search.climb import Candidate
from hotloop.trial.trial import Trial
from hotloop.workshop.watching import Outlook

TO_PROVE, TO_EXAMINE, TO_EXAMINE_AGAIN, TO_SOAK = 10, 7, 2, 3
"""Runs."""
FOR_A_PART = 4
"""Left out a few times, and once on the ladder."""
TO_COMPILE = 10
"""Runs of the job as it is that one takes which compiles anew: six to ten were seen on CPUs."""
MOST_KEPT_BACK = 0.7
"""Of the budget."""


def outlook(candidates: Sequence[Candidate], seconds: float) -> Outlook:
    """At the least nothing helps; at the most everything does, and is proven one by one.

    `seconds`: what a run takes.
    """
    if not candidates:
        return Outlook((1, 1), (seconds, seconds))
    settings = sum(len(one.settings) for one in candidates)
    least = 1 + settings
    afterwards = AFTER_THE_CLIMB + FOR_A_PART * len(candidates) + TO_PROVE + TO_EXAMINE_AGAIN
    most = 1 + 2 * settings + afterwards
    return Outlook((least, most), (least * seconds, most * seconds))


def is_short(candidates: Sequence[Candidate], left: float, seconds: float) -> bool:
    """Whether what compiles might take the time that the others need. `left`: for all of them."""
    runs = sum(len(one.settings) for one in candidates)
    return left < (runs + TO_COMPILE) * seconds


AFTER_THE_CLIMB = TO_PROVE + TO_EXAMINE + TO_SOAK
AFTER_THE_PROOF = TO_EXAMINE_AGAIN + TO_SOAK
"""Runs for which time is kept back, so that what was found can be shown."""


def kept_back(budget: float, runs: int, trials: Sequence[Trial]) -> float:
    """Of the budget, for so many more runs; but what comes before them is not to starve.

    By what runs took on average so far: those of a plan that compiles take longer than the first.
    """
    if not runs or not trials:
        return 0.0
    # What the job as it is spends before it is steady, such as starting a GPU, comes every time.
    usual = _once(trials[0])
    again = sum(trial.seconds - max(0.0, _once(trial) - usual) for trial in trials)
    return min(runs * again / len(trials), MOST_KEPT_BACK * budget)


def _once(trial: Trial) -> float:
    """Seconds for what a later trial of the plan finds done, such as compiled code."""
    found = figures(trial.measurement) if trial.measurement else None
    return found.one_off_seconds if found else 0.0
