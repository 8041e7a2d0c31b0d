"""The trials of a search as they come in: what was tried, how fast it was, what became of it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from hotloop import units
from hotloop.plan import Plan
from hotloop.report.plan_words import NOTHING, beyond, key, plan_words, setting_words
from hotloop.search.climb import CROWDED
from hotloop.search.compare import worth_adding
from hotloop.search.score import Score
from hotloop.trial.side_by_side import SIDE_BY_SIDE
from hotloop.trial.trial import State, Trial
from hotloop.workshop.lengths import whole_training
from hotloop.workshop.scores import score_of

TIMED = ("baseline", "rescue", "screen", "beside", "again", "proof", "rung")
"""What trials are run for whose speed means something: others are watched too closely."""
CLIMBED = ("baseline", "rescue", "screen", "beside")
"""Of these, what looks for a plan, and proves none."""
BESIDE = ("again", "proof")
"""In these the job as it is runs beside the plan, and on a busy machine otherwise than before."""

APART = "not compared"
_FAILED = {
    State.OUT_OF_MEMORY: "out of memory",
    State.CRASHED: "crashed",
    State.TIMED_OUT: "took too long",
    State.INTERRUPTED: "interrupted",
    State.NOT_APPLIED: "took no effect",
    State.NOTHING_MEASURED: "nothing measured",
}
_REPEATED = re.compile(r"^The optimisation (\w+) did not take effect: ")
"""What the outcome says already."""


@dataclass(frozen=True)
class TrialRow:
    number: int
    words: str
    value: str
    """Time of a step, or memory; empty where it was not the point."""
    ratio: str
    """Against the job as it is, as it ran last."""
    outcome: str
    """"kept", "refused", what failed, or nothing to say."""
    reason: str
    added: tuple[str, ...] = ()
    """Optimisations that this trial was to show something of, beyond the best plan until then."""

    @property
    def ending(self) -> str:
        return f"{self.outcome}: {self.reason}" if self.reason else self.outcome


class Telling:
    """Trials told in order. What was tried is said against what was the best until then."""

    def __init__(self, objective: str = "speed") -> None:
        self._objective = objective
        self._baseline: float | None = None
        self._steps: int | None = None
        """Of the whole training, where its end was seen."""
        self._best: float | None = None
        """With what comes once, where that counts."""
        self._best_plan = self._start = Plan()
        self._crowd = 0.0
        """That the best until then was measured beside."""
        self._open: tuple[Plan, float, float] | None = None
        """Measured beside another crowd, and not compared yet."""
        self._whole = Plan()
        self._rounds: Counter[frozenset[str]] = Counter()
        self._measured: list[tuple[Plan, float]] = []
        self._is_examined = False

    def words(self, purpose: str, plan: Plan) -> str:
        """Of the trial that comes next."""
        if purpose == "baseline":
            return NOTHING if self._baseline is None else f"once more: {NOTHING}"
        if purpose == "look":
            return "looked into: what limits it"
        if purpose == "rescue":
            return f"to make it run: {plan_words(plan)}"
        if purpose == "cost":
            return f"timed on smaller batches: {NOTHING if plan.is_empty else 'the plan'}"
        if purpose == "screen":
            return self._added(plan)
        if purpose == "beside":
            return f"once more: {NOTHING if plan.is_empty else 'the best so far'}"
        if purpose == "again":
            return f"once more: {NOTHING if plan.is_empty else 'the plan'}"
        if purpose == "proof":
            return f"proof {self._rounds[key(plan)] + 1}: {self._proven(plan)}"
        if purpose == "rung":
            return f"for the ladder: {plan_words(plan)}"
        if purpose.endswith(SIDE_BY_SIDE):
            return f"examined: {purpose}"
        what = NOTHING if plan.is_empty else "the plan"
        return f"soak: {what}" if purpose == "soak" else f"examined: {purpose}, {what}"

    def tell(self, trial: Trial) -> TrialRow:
        if trial.purpose == "rescue":  # from here on the fastest is looked for that runs
            self._objective = "speed"
        if trial.purpose == "screen" and self._is_examined:
            self._begin_anew(trial.plan)
        words = self.words(trial.purpose, trial.plan)
        score = self._score(trial)
        value = score.value
        # The job as it is was slower or faster than itself by chance, in whatever it was run for.
        is_compared = trial.purpose not in ("baseline", "beside") and not trial.plan.is_empty
        is_compared = is_compared and not self._met_others(trial, score)
        ratio = self._baseline / value if self._baseline and value and is_compared else None
        added = tuple(one.lever for one in beyond(trial.plan, self._best_plan))
        outcome, reason = self._outcome(trial, score)
        self._remember(trial, score, outcome)
        return TrialRow(
            trial.number,
            words,
            "" if value is None else value_words(value, self._objective),
            "" if ratio is None else f"{ratio:.2f}×",
            outcome,
            reason,
            added,
        )

    def _score(self, trial: Trial) -> Score:
        if trial.purpose not in TIMED:
            return Score(None)
        if trial.purpose == "baseline":
            self._steps = whole_training(trial)
        return score_of(trial, self._objective, self._steps)

    def _added(self, plan: Plan) -> str:
        new = beyond(plan, self._best_plan)
        if key(self._best_plan) < key(plan):
            return f"+ {' + '.join(setting_words(chosen) for chosen in new)}"
        return plan_words(plan)

    def _proven(self, plan: Plan) -> str:
        """A proof leaves out what the largest plan in it has."""
        if plan.is_empty:
            return NOTHING
        left_out = beyond(self._whole, plan)
        return f"without {', '.join(out.lever for out in left_out)}" if left_out else "the plan"

    def _outcome(self, trial: Trial, score: Score) -> tuple[str, str]:
        if trial.state is not State.COMPLETE:
            return _FAILED[trial.state], _REPEATED.sub(r"\1: ", " ".join(trial.reason.split()))
        if trial.purpose == "beside" and self._open and score.whole:
            is_kept = score.whole / self._open[1] >= self._least()
            return f"so the run before it is {'kept' if is_kept else 'refused'}", ""
        if trial.purpose != "screen" or not score.whole or not score.value or self._best is None:
            return "", ""
        if self._met_others(trial, score):
            return APART, "other programs took much more or less of the cores than before"
        least = self._least()
        if self._best / score.whole >= least:
            return "kept", ""
        if self._best / score.value >= least:
            return "refused", score.too_short
        return "refused", f"no gain over {value_words(self._best, self._objective)}"

    def _least(self) -> float:
        return worth_adding(to_others=self._best_plan != self._start)

    def _met_others(self, trial: Trial, score: Score) -> bool:
        return trial.purpose == "screen" and abs(score.crowd - self._crowd) >= CROWDED

    def _begin_anew(self, plan: Plan) -> None:
        """What was examined did not pass: the search goes on from a smaller plan."""
        self._is_examined = False
        within = [one for one in reversed(self._measured) if key(one[0]) < key(plan)]
        if within:
            self._best_plan, self._best = max(within, key=lambda one: len(one[0].levers))

    def _remember(self, trial: Trial, score: Score, outcome: str) -> None:
        whole = score.whole
        if trial.purpose == "proof":
            self._rounds[key(trial.plan)] += 1
            self._whole = max(self._whole, trial.plan, key=lambda plan: len(plan.levers))
        if trial.purpose.startswith("candidate"):
            self._is_examined = True
        if trial.purpose in ("baseline", "rescue", "screen") and whole is not None:
            self._measured.append((trial.plan, whole))
        if trial.purpose == "baseline":
            self._baseline = self._best = score.value
            self._crowd = score.crowd
        if trial.purpose in BESIDE and trial.plan.is_empty and score.value is not None:
            self._baseline = score.value
        if trial.purpose == "beside" and whole and self._baseline and self._best:
            self._baseline, self._best = self._baseline * whole / self._best, whole
            self._crowd = score.crowd
            if self._open and outcome.endswith("kept"):
                self._best_plan, self._best, self._crowd = self._open
        self._open = (trial.plan, whole, score.crowd) if outcome == APART and whole else None
        if trial.purpose == "rescue" and whole is not None:
            self._best, self._best_plan = whole, trial.plan
            self._start = trial.plan
        if outcome == "kept":
            self._best, self._best_plan, self._crowd = whole, trial.plan, score.crowd


def value_words(value: float, objective: str) -> str:
    return units.size(round(value)) if objective == "memory" else units.seconds(value)
