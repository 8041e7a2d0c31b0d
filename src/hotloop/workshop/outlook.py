"""About how many runs of the script a search will take, and how many of them come at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotloop.compiling import all_seconds
from hotloop.figures import figures
from hotloop.levers.registry import LEVERS
from hotloop.plan import Plan
from hotloop.search.candidate import Candidate
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
LOOKED_UP = 0.25
"""Of what compiling took, when the code lies in the study's cache: it is traced and found again."""


def outlook(candidates: Sequence[Candidate], seconds: float) -> Outlook:
    """At the least nothing helps; at the most everything does, and is proven one by one.

    `seconds`: what a run takes.
    """
    if not candidates:
        return Outlook((1, 1), (seconds, seconds))
    settings = sum(len(one.settings) for one in candidates)
    least = 1 + sum(len(one.settings) for one in candidates if one.worth_from <= 1)
    afterwards = TO_PROVE + TO_EXAMINE + TO_SOAK + FOR_A_PART * len(candidates)
    afterwards += TO_PROVE + TO_EXAMINE_AGAIN + TO_SOAK
    most = 1 + 2 * settings + afterwards
    to_prove = 2 + TO_EXAMINE + TO_SOAK + TO_PROVE
    return Outlook((least, most), (least * seconds, most * seconds), to_prove * seconds)


def is_short(candidates: Sequence[Candidate], left: float, seconds: float) -> bool:
    """Whether what compiles might take the time that the others need. `left`: for all of them."""
    runs = sum(len(one.settings) for one in candidates)
    return left < (runs + TO_COMPILE) * seconds


@dataclass(frozen=True)
class Later:
    """Runs for which time is kept back, so that what was found can be shown."""

    runs: int = 0
    examined: int = 0
    """Further ones, which are examined rather than timed."""
    of: tuple[Plan, ...] = ()
    """Under which plans, where that is known: what others took says little of them then."""

    def seconds(self, budget: float, trials: Sequence[Trial]) -> float:
        plans = [plan.levers for plan in self.of]
        alike = [
            trial
            for trial in trials
            if not plans or trial.plan.levers in plans or trial.evidence is not None
        ]
        return kept_back(budget, self.runs, alike or trials, self.examined)


def after_the_climb(before: Sequence[Trial]) -> Later:
    """Where something was examined before, what it was compared with is there."""
    is_known = any(trial.evidence is not None for trial in before)
    return Later(TO_PROVE + TO_SOAK, TO_EXAMINE_AGAIN if is_known else TO_EXAMINE)


def after_the_examination(plan: Plan, start: Plan) -> Later:
    return Later(TO_PROVE + TO_SOAK, of=(start, plan))


def after_the_proof(plan: Plan, start: Plan, soaked: Plan | None) -> Later:
    """Only where batches are larger than those that were soaked."""
    return Later() if plan == soaked else Later(TO_SOAK, of=(start, plan))


def without_passengers(plan: Plan, start: Plan) -> Later:
    """Then it is a plan that nobody has looked at."""
    return Later(TO_SOAK, TO_EXAMINE_AGAIN, (start, plan))


def kept_back(budget: float, runs: int, trials: Sequence[Trial], examined: int = 0) -> float:
    """Of the budget, for so many more runs; but what comes before them is not to starve.

    By what runs took on average so far: those of a plan that compiles take longer than the first,
    and those that are examined take as long as such runs do.
    """
    if not runs + examined or not trials:
        return 0.0
    # What the job as it is spends before it is steady, such as starting a GPU, comes every time;
    # but for what it compiles itself.
    usual = max(0.0, _once(trials[0]) - _kept(trials[0]))
    others = [trial for trial in trials if trial.evidence is None] or trials
    looked_at = [trial for trial in trials if trial.evidence is not None] or others
    later = runs * _again(others, usual) + examined * _again(looked_at, usual)
    return min(later, MOST_KEPT_BACK * budget)


def _again(trials: Sequence[Trial], usual: float) -> float:
    """Seconds that another like these takes."""
    spent = sum(trial.seconds - max(0.0, _found_done(trial) - usual) for trial in trials)
    return spent / len(trials)


def once_more(trial: Trial) -> float:
    """Seconds that the same takes once more, after the first trial of a study."""
    return trial.seconds - _kept(trial)


def _kept(trial: Trial) -> float:
    """Seconds of compiling that a later trial is spared."""
    return (1 - LOOKED_UP) * all_seconds(trial.measurement) if trial.measurement else 0.0


def _found_done(trial: Trial) -> float:
    """Seconds for what a later trial of the plan finds done, such as compiled code."""
    if any(LEVERS[chosen.lever].only_captures for chosen in trial.plan.levers):
        return 0.0
    return _once(trial)


def _once(trial: Trial) -> float:
    """Seconds beyond steady steps."""
    found = figures(trial.measurement) if trial.measurement else None
    return found.one_off_seconds if found else 0.0
