"""The best plan that does the same training, also a long one.

Whatever seems to help is examined and soaked before it is proven: the proof takes longest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from hotloop.equivalence.judge import Equivalence
from hotloop.plan import Plan
from hotloop.search.candidate import Candidate
from hotloop.search.climb import BESIDE, Bench, BudgetSpent, Climb, Tried, climb
from hotloop.search.compare import LEAST_GAIN
from hotloop.search.doubt import doubts
from hotloop.search.interactions import apart, combined, names, without
from hotloop.search.score import Score
from hotloop.trial.trial import State, Trial
from hotloop.workshop import lengths
from hotloop.workshop.examine import Examiner
from hotloop.workshop.footing import Footing, NoPlan
from hotloop.workshop.outlook import (
    Later,
    after_the_climb,
    after_the_examination,
    is_short,
    once_more,
)
from hotloop.workshop.scores import score_of
from hotloop.workshop.soak import NOT_BORNE
from hotloop.workshop.workshop import Workshop

PATIENCE = 10.0
"""Times the first trial: after so long without any gain a job has nothing to win."""
BLIND = (
    "No plan is handed out: what this job's models are given depends on their own weights, so that "
    "no two of its runs can be compared."
)


@dataclass
class _UntilSomethingHelps:
    """A bench, and nothing is measured there any more once something is faster."""

    bench: Bench
    score: float
    """Of the job as it is."""
    cut: Sequence[Trial]
    """Of plans that there was no time for: what is quick does not wait for them again."""
    latest: float | None = None

    @property
    def has_helped(self) -> bool:
        return self.latest is not None and self.latest * (1 + LEAST_GAIN) <= self.score

    @property
    def spent(self) -> float:
        return self.bench.spent

    def measure(self, plan: Plan, purpose: str, give_up_above: float | None = None) -> Score:
        if self.has_helped and purpose != BESIDE:
            raise BudgetSpent
        if reason := next((one.reason for one in self.cut if one.is_for(plan, purpose)), ""):
            return Score(None, reason)
        score = self.bench.measure(plan, purpose, give_up_above)
        if purpose != BESIDE:
            self.latest = score.value
        elif score.value is not None:
            self.score = score.value
        return score


def _is_cut(trial: Trial) -> bool:
    return trial.purpose == "screen" and trial.state is State.TIMED_OUT


def _both(first: Climb, then: Climb) -> Climb:
    """The second, which may have ended sooner, with what only the first has tried."""
    plans = [one.plan for one in then.tried]
    before = [one for one in first.tried if one.plan not in plans]
    untried = tuple(lever for lever in then.untried if lever in first.untried)
    return replace(then, tried=(*before, *then.tried), untried=untried)


class Choice:
    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop
        self.excluded: dict[str, str] = {}
        """Optimisations that change the training, and how."""
        self.unfit: dict[str, str] = {}
        """Optimisations that do not survive what a long training meets, and how."""
        self.endured: Plan | None = None
        """The plan that does."""
        self.unexamined: tuple[str, ...] = ()
        """Those that helped, but there was no time to show that they do not."""
        self._gains: dict[str, float] = {}
        self._tried: list[Tried] = []

    def best(
        self,
        candidates: Sequence[Candidate],
        baseline: Trial,
        score: float,
        footing: Footing,
        examiner: Examiner,
    ) -> Plan:
        """Searches again without what changes the training or breaks it, until nothing does.

        `score`: what the baseline came to. Where nothing helps, the plan is the footing's own.
        Where the time for a proof would be spent on showing that a plan trains the same, it is a
        smaller one of which that was shown until then.
        """
        workshop = self._workshop
        # What was spent on what comes before does not count against the climb, but the first trial.
        patience = workshop.spent + (PATIENCE - 1) * baseline.seconds
        while True:
            barred = {*self.excluded, *self.unfit}
            left = [one for one in candidates if one.lever not in barred]
            found = self._climbed(left, baseline, score, patience, footing)
            found = self._believed(found, footing)
            if found.plan == footing.plan:
                return found.plan
            plan = self._examined(found.plan, footing, examiner)
            if plan is not None and self._endures(plan, footing):
                return plan
            # What was spent until here was not spent in vain, and does not count against the rest.
            patience = workshop.spent + PATIENCE * baseline.seconds

    def _climbed(
        self,
        candidates: Sequence[Candidate],
        baseline: Trial,
        score: float,
        patience: float,
        footing: Footing,
    ) -> Climb:
        workshop = self._workshop
        workshop.keep_back(after_the_climb(workshop.record.trials))
        in_haste = is_short(candidates, workshop.left, once_more(baseline))
        crowd = score_of(baseline, footing.options.objective).crowd
        told = footing.plan, in_haste, crowd
        found = climb(score, candidates, workshop, patience, *told)
        workshop.keep_back(Later())
        cut = [trial for trial in workshop.record.trials if _is_cut(trial)]
        patience += sum(trial.seconds for trial in cut)  # they tell nothing of their plans
        if found.untried and found.plan.is_empty and workshop.spent <= patience:
            # As long as there is nothing to prove, no time need be kept for it.
            first = _UntilSomethingHelps(workshop, score, cut)
            found = climb(score, candidates, first, patience, *told)
            too_long = [one for one in cut if one.seconds * lengths.MORE >= workshop.left]
            if found.plan.is_empty and len(too_long) < len(cut):
                last = _UntilSomethingHelps(workshop, score, too_long)
                again = climb(score, candidates, last, patience, *told)
                found = _both(found, again)
        found = self._with_earlier(found)
        footing.note(climb=found)
        kept = [one for one in found.tried if one.kept and one.score.value]
        self._gains |= {one.lever: one.best / (one.score.value or one.best) for one in kept}
        return found

    def _believed(self, found: Climb, footing: Footing) -> Climb:
        """Without a plan, where what it seemed to win does not hold. Memory is what it is."""
        if found.plan == footing.plan or footing.options.objective != "speed":
            return found
        self._workshop.keep_back(after_the_climb(self._workshop.record.trials))
        reason = doubts(footing.plan, found.plan, found.gain, self._workshop)
        self._workshop.keep_back(Later())
        if not reason:
            return found
        tried = [replace(one, kept=False, reason=one.reason or reason) for one in found.tried]
        found = replace(found, plan=footing.plan, tried=tuple(tried))
        footing.note(climb=found)
        return found

    def _with_earlier(self, found: Climb) -> Climb:
        """What came of those that this time there was no time for, in a climb before."""
        left = {*found.untried}
        known = [one for one in self._tried if {*one.lever.split("+")} <= left]
        self._tried += found.tried
        levers = {lever for one in known for lever in one.lever.split("+")}
        untried = tuple(lever for lever in found.untried if lever not in levers)
        return replace(found, tried=(*known, *found.tried), untried=untried)

    def _examined(self, plan: Plan, footing: Footing, examiner: Examiner) -> Plan | None:
        """The plan, or a smaller one for want of time. None: what changes the training is known.

        Without a smaller one to turn to it goes on: a proof may take less than was thought.
        """
        for later in (after_the_examination(plan, footing.plan), Later()):
            self._workshop.keep_back(later)
            try:
                equivalence = examiner.examine(plan)
                footing.note(equivalence=equivalence)
                if not equivalence.same and examiner.is_blind():
                    self.excluded |= dict.fromkeys(names(plan), equivalence.reasons[0])
                    return footing.instead(BLIND)
                if not equivalence.same:
                    self._exclude(plan, equivalence, footing, examiner)
                return plan if equivalence.same else None
            except BudgetSpent:
                if (smaller := self._shown(plan, footing, examiner)) is not None:
                    return smaller
            finally:
                self._workshop.keep_back(Later())
        raise BudgetSpent

    def _exclude(
        self, plan: Plan, whole: Equivalence, footing: Footing, examiner: Examiner
    ) -> None:
        """Whatever differs by itself; if only their combination does, the last one found."""
        needed = footing.plan
        added = [one for one in plan.levers if one not in needed.levers]
        alone = {one.lever: combined(needed, apart(plan, one.lever)) for one in added}
        if len(alone) > 1:
            examiner.run_ahead(alone.values())
            judged = {lever: examiner.examine(single) for lever, single in alone.items()}
            self.excluded |= {
                lever: each.reasons[0] for lever, each in judged.items() if not each.same
            }
        if not self.excluded.keys() & alone.keys():
            self.excluded[added[-1].lever] = whole.reasons[0]

    def _endures(self, plan: Plan, footing: Footing) -> bool:
        """If it does not, what is to blame is known afterwards."""
        soaked = footing.soaked(plan)
        footing.note(soaked=soaked)
        if soaked.reason.startswith(NOT_BORNE):
            raise NoPlan(f"No plan is handed out: {soaked.reason}.")
        if soaked.passed:
            self.endured = plan
        else:
            self.unfit[self._to_blame(plan, footing)] = soaked.reason
        return soaked.passed

    def _to_blame(self, plan: Plan, footing: Footing) -> str:
        """The optimisation without which the others survive; the last, if there is none."""
        added = [one.lever for one in reversed(plan.levers) if one not in footing.plan.levers]
        for lever in added:
            rest = without(plan, lever)
            if rest.levers == footing.plan.levers or footing.soaked(rest).passed:
                return lever
        return added[0]

    def _shown(self, plan: Plan, footing: Footing, examiner: Examiner) -> Plan | None:
        """The best of what was examined in time. None: nothing was, or it changes the training."""
        same = [one for one in examiner.same if one.levers != footing.plan.levers]
        if not same:
            return None
        best = max(same, key=self._gain)
        footing.note(equivalence=examiner.examine(best))
        kept = {*names(best), *names(footing.plan), *self.excluded}
        self.unexamined = tuple(lever for lever in names(plan) if lever not in kept)
        return best

    def _gain(self, plan: Plan) -> float:
        """As the climb has seen it, each on top of what was there before."""
        chosen = {*names(plan)}
        return prod(gain for name, gain in self._gains.items() if {*name.split("+")} <= chosen)
