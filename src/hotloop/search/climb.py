"""What to try next. Decides by measured trials alone, so that a search can be replayed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

from hotloop.levers.base import MUCH_FASTER
from hotloop.plan import LeverSetting, Plan
from hotloop.search import second_looks
from hotloop.search.candidate import Candidate, most_promising_first
from hotloop.search.compare import LEAST_GAIN, worth_adding
from hotloop.search.interactions import (
    combined,
    is_needless,
    missing,
    names,
    rivals,
    stood_for,
    superseded,
    without,
)
from hotloop.search.score import Score
from hotloop.search.second_looks import Idea, Look

CLEARLY_WORSE = 1.25
"""Times the best so far: a trial that is beyond need not be measured to the end."""
CROWDED = 0.2
"""Of the cores' time, that others took more or less of: two scores cannot be compared then."""
BESIDE = "beside"
MOST_SECOND_LOOKS = 4
"""A search costs the user's time: five optimisations are decided in ten trials, of 32 plans."""


class BudgetSpent(Exception):
    """The time the user granted is over. What was found until then stands."""


class Bench(Protocol):
    """Where plans are measured, one fresh process each."""

    @property
    def spent(self) -> float:
        """Seconds that trials have taken so far."""

    def measure(self, plan: Plan, purpose: str, give_up_above: float | None = None) -> Score:
        """One trial. One that is clearly slower than `give_up_above` may end early.

        Raises BudgetSpent instead when there is no time for it.
        """


@dataclass(frozen=True)
class Tried:
    """A step of the climb: one plan, against the best until then."""

    plan: Plan
    lever: str
    """What was added; several are joined by "+"."""
    score: Score
    best: float
    """The score to beat."""
    kept: bool
    reason: str
    """Why not; empty when kept."""


@dataclass(frozen=True)
class Climb:
    plan: Plan
    tried: tuple[Tried, ...]
    untried: tuple[str, ...] = ()
    """Left out for want of time."""
    spared: tuple[str, ...] = ()
    """Not tried, because what they stand in for was measured, or what is kept does their work."""
    small: tuple[str, ...] = ()
    """Not tried, because the job did not become fast enough for them to matter."""
    gain: float = 1.0
    """How many times as good the plan is, by one process each."""


def climb(
    baseline: float,
    candidates: Sequence[Candidate],
    bench: Bench,
    patience: float,
    start: Plan | None = None,
    quick_first: bool = False,
    crowd: float = 0.0,
) -> Climb:
    """Adds one optimisation after the other, the most promising first, and keeps what helps.

    `baseline`: what the job as it is came to, beside that `crowd`. `patience`: seconds after which
    to stop when nothing at all has helped. `start`: the plan that the baseline had, where the job
    needs one to run. `quick_first`: what compiles comes last, since its trial may take all the time
    that is left.
    """
    ranked = most_promising_first(candidates, quick_first)
    begin = Score(baseline, crowd=crowd)
    ascent = _Ascent(begin, ranked, bench, patience, start or Plan())
    with contextlib.suppress(BudgetSpent, _OutOfPatience):
        ascent.first_looks()
        ascent.late_looks()
        ascent.second_looks()
        ascent.late_looks()
        ascent.dear_looks()
    return ascent.result()


class _OutOfPatience(Exception):
    """Nothing has helped, for long enough."""


class _Ascent:
    """The best plan so far, and everything that was tried to get there."""

    def __init__(
        self,
        baseline: Score,
        candidates: Sequence[Candidate],
        bench: Bench,
        patience: float,
        start: Plan,
    ) -> None:
        self._first = self._best = baseline.value or 0.0
        self._crowd = baseline.crowd
        self._plan = self._start = start
        self._candidates = {candidate.lever: candidate for candidate in candidates}
        self._bench = bench
        self._patience = patience
        self._tried: list[Tried] = []
        self._looks: list[Look] = []
        self._taken: set[str] = set()
        self._spared: list[str] = []
        self._second_looks = MOST_SECOND_LOOKS
        """Left."""

    def result(self) -> Climb:
        seen = {chosen.lever for look in self._looks for chosen in look.added}
        known = {*seen, *self._spared}
        left = [one for one in self._candidates.values() if one.lever not in known]
        small = tuple(one.lever for one in left if not self._is_worth_it(one))
        untried = tuple(one.lever for one in left if one.lever not in small)
        told = tuple(self._tried), untried, tuple(self._spared), small
        return Climb(self._plan, *told, self._first / self._best)

    def first_looks(self) -> None:
        left = list(self._candidates.values())
        while worth := next(filter(self._is_worth_it, left), None):
            left.remove(worth)
            self._look_at(worth)

    def _is_worth_it(self, candidate: Candidate) -> bool:
        return self._first / self._best >= candidate.worth_from

    def _look_at(self, candidate: Candidate) -> None:
        stands_in = stood_for(candidate.lever) in self._measured()
        if stands_in or is_needless(self._plan, candidate.lever):
            self._spared.append(candidate.lever)
            return
        for setting in candidate.settings:
            if LeverSetting(candidate.lever, setting) in self._plan.levers:
                continue  # another has brought it along
            score = self._try(self._with_requirements(candidate.lever, setting))
            if not score.applied:
                break  # what kept it from taking effect does so in every setting

    def second_looks(self) -> None:
        while self._second_looks > 0:
            self._second_looks -= 1
            again = second_looks.reopened(self._plan, self._looks)
            together = second_looks.together(self._plan, self._looks)
            # The last one is kept for what no single look can find.
            first, last = (again, together) if self._second_looks else (together, again)
            if not self._take_first(chain(first, last)):
                break
        # On what has become the plan, and beyond the count: a job has few such settings.
        while self._take_first(second_looks.other_settings(self._plan, self._looks)):
            pass

    def late_looks(self) -> None:
        """At what has helped so much that other things may limit the job by now."""
        if self._first / self._best >= MUCH_FASTER:
            while self._take_first(self._late_ideas()):
                pass

    def _late_ideas(self) -> Iterator[Idea]:
        for chosen in self._helped():
            for change in self._candidates[chosen.lever].late:
                changed = LeverSetting(chosen.lever, {**chosen.setting, **change})
                yield Idea(f"{chosen.lever} with {change}", (changed,))

    def dear_looks(self) -> None:
        """At what has helped, in settings that take long: nothing else is kept waiting for them."""
        for chosen in self._helped():
            for setting in self._candidates[chosen.lever].dear:
                self._try((LeverSetting(chosen.lever, setting),))

    def _helped(self) -> list[LeverSetting]:
        return [chosen for chosen in self._plan.levers if chosen.lever in self._candidates]

    def _measured(self) -> set[str]:
        """By themselves or with others, and to the end."""
        looks = [look for look in self._looks if look.gain is not None]
        return {chosen.lever for look in looks for chosen in look.added}

    def _take_first(self, ideas: Iterator[Idea]) -> bool:
        """The first that is new; False when there is none."""
        measured = [tried.plan for tried in self._tried]
        for idea in ideas:
            if idea.name not in self._taken and combined(self._plan, idea.added) not in measured:
                self._taken.add(idea.name)
                self._try(idea.added)
                return True
        return False

    def _try(self, added: tuple[LeverSetting, ...], instead_of: tuple[str, ...] = ()) -> Score:
        plan = combined(self._plan, added)
        for lever in instead_of:
            plan = without(plan, lever)
        score = self._measure(plan)
        for lever in superseded(score.idle, added):
            plan = without(plan, lever)
            score = self._measure(plan)
        self._meet_the_same_crowd(score)
        gain = None if score.whole is None else self._best / score.whole
        least = worth_adding(to_others=self._plan != self._start)
        if instead_of:
            least = 1 / (1 + LEAST_GAIN)  # fewer are better, if as fast
        reason = (score.reason or "no value") if gain is None else _too_little(gain, least)
        if score.value is not None and reason and self._best / score.value >= least:
            reason = score.too_short
        name = "+".join(chosen.lever for chosen in plan.levers if chosen in added)
        self._tried.append(Tried(plan, name, score, self._best, not reason, reason))
        self._looks.append(Look(added, gain, not reason))
        if score.whole is not None and not reason:
            self._plan, self._best, self._crowd = plan, score.whole, score.crowd
            for lever in rivals(plan, added):
                self._try_instead(added, lever)
        return score

    def _meet_the_same_crowd(self, score: Score) -> None:
        """The best until then is measured anew where others take much more of the machine by now,
        or much less: what it came to before says nothing of what has just been measured."""
        if score.whole is None or abs(score.crowd - self._crowd) < CROWDED:
            return
        again = self._bench.measure(self._plan, BESIDE)
        if again.whole is not None:
            self._first *= again.whole / self._best
            self._best, self._crowd = again.whole, again.crowd

    def _try_instead(self, added: tuple[LeverSetting, ...], lever: str) -> None:
        """A second look at what was kept first: it counts as one."""
        if without(self._plan, lever) not in [tried.plan for tried in self._tried]:
            self._second_looks -= 1
            self._try(added, instead_of=(lever,))

    def _measure(self, plan: Plan) -> Score:
        for chosen in plan.levers:
            if lacking := missing(plan, chosen.lever):
                return Score(None, f"it needs {', '.join(lacking)}", applied=False)
        if self._is_out_of_patience(plan):
            raise _OutOfPatience
        return self._bench.measure(plan, "screen", self._best * CLEARLY_WORSE)

    def _is_out_of_patience(self, plan: Plan) -> bool:
        """A stand-in has its chance: what it stands in for may have failed by taking long."""
        if self._plan != self._start or any(map(stood_for, names(plan))):
            return False
        return self._bench.spent > self._patience

    def _with_requirements(self, lever: str, setting: dict[str, Any]) -> tuple[LeverSetting, ...]:
        """One that cannot be without another brings it along."""
        needed = [self._candidates.get(name) for name in missing(self._plan, lever)]
        brought = [LeverSetting(one.lever, one.settings[0]) for one in needed if one]
        return (*brought, LeverSetting(lever, setting))


def _too_little(gain: float, least: float) -> str:
    """Why it is not kept; empty when it is."""
    if gain >= least:
        return ""
    if gain < 1:
        return f"worse: {gain:.3f}× the best until then"
    digits = 3 if f"{gain:.3f}" != f"{least:.3f}" else 5
    return f"{gain:.{digits}f}× is less than the {least:.3f}× that would count"
