"""Where the trials of a search are run: recorded one by one, within a budget, and replayed.

A search decides by its trials alone. So one that was stopped, however roughly, goes on by being
made again: as long as the trials it asks for have been run before, their results are handed out.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hotloop import study
from hotloop.diagnose.diagnosis import Diagnosis
from hotloop.figures import Figures, figures
from hotloop.job import ScriptJob
from hotloop.plan import Plan
from hotloop.roof import Roof
from hotloop.search.climb import BudgetSpent
from hotloop.search.rescue import PURPOSE as RESCUE
from hotloop.search.score import Score
from hotloop.study import Found, Study
from hotloop.trial.order import Launcher, Order
from hotloop.trial.side_by_side import SIDE_BY_SIDE, Placed
from hotloop.trial.spec import Exam, Look, Soak, StopRule
from hotloop.trial.trial import State, Trial
from hotloop.workshop import lengths
from hotloop.workshop.ahead import Ahead
from hotloop.workshop.earlier import Earlier
from hotloop.workshop.folders import free_folder
from hotloop.workshop.granted import Granted
from hotloop.workshop.once_more import is_worth_another_run
from hotloop.workshop.outlook import Later
from hotloop.workshop.room import Asked
from hotloop.workshop.scores import score_of
from hotloop.workshop.short_scripts import another_look
from hotloop.workshop.watching import Audience
from hotloop.workshop.weights import Tying, WeightsGone, are_gone, clear, needed, new_name, shared

BASELINE = "baseline"
LOOK = "look"
NO_PLAN = Plan()


class Workshop:
    def __init__(
        self,
        job: ScriptJob,
        record: Study,
        granted: Granted,
        folder: Path,
        launcher: Launcher,
        audience: Audience,
        earlier: tuple[Trial, ...] = (),
    ) -> None:
        self.record = record
        self.folder = folder
        self.job = job
        self._granted = granted
        self._launcher = Tying(launcher)
        self._audience = audience
        self._earlier = Earlier(earlier)
        self._objective = record.found.options.objective if record.found else "speed"
        self._stop = lengths.first_look(granted.steps)
        self._later = Later()
        self._at_once = False
        self._whole: int | None = None
        self._screened: dict[str, Score] = {}
        self._references: set[str] = set()
        """Those that were run here, and not replayed."""
        self._ahead = Ahead()
        self._began = time.monotonic()
        self._handed_out = 0.0
        """Seconds that trials took which were run before, and are not run now."""

    @property
    def spent(self) -> float:
        """On trials alone: the same when a search is made again."""
        return sum(trial.cost for trial in self.record.trials) + self._ahead.cost

    @property
    def budget(self) -> float | None:
        return self._granted.budget

    @property
    def is_bound_by_budget(self) -> bool:
        """Rather than by the limit of a single run."""
        return self.budget is not None and self.budget < self._granted.limit

    @property
    def left(self) -> float:
        """Of the budget, without what is kept back.

        By the clock: the machine's limits are measured in between, and large files removed.
        """
        if self.budget is None:
            return math.inf
        passed = max(self.spent, time.monotonic() - self._began + self._handed_out)
        return self.budget - self._later.seconds(self.budget, self.record.trials) - passed

    def measure_by(self, baseline: Figures, whole: int | None = None) -> None:
        """From here on every trial measures as many steps. `whole`: all, where the end was seen."""
        self._whole = whole
        steps = self._granted.steps or lengths.steps_for(baseline.step.p50)
        self._stop = StopRule(steps=steps, max_seconds=lengths.MOST_SECONDS)

    def without_memory(self) -> None:
        """From here on plans act from the first call on, and of those that run the fastest wins."""
        self._at_once, self._objective = True, "speed"

    def new_weights(self) -> str:
        """The name of those that a reference may save next."""
        return new_name((*self.record.trials, *self._ahead.trials, *self._earlier.trials))

    def keep_back(self, later: Later) -> None:
        """For these runs some of the budget is left."""
        self._later = later

    def note(self, found: Found) -> None:
        """What was run and is not asked for any more has cost something all the same."""
        was_over = self.record.found is not None and self.record.found.verdict
        self.record = replace(self.record, found=found)
        if found.verdict and not was_over:
            runs = len(self._earlier.trials) + len(self._ahead.trials)
            self.record = self.record.without_use(runs, self._earlier.cost + self._ahead.cost)
        self._save()

    def baseline(self, plan: Plan = NO_PLAN) -> Trial:
        """`plan`: what the job may need to run at all."""
        return self.run(plan, BASELINE, self._stop)

    def measure(self, plan: Plan, purpose: str, give_up_above: float | None = None) -> Score:
        """A plan that was screened before, or tried to make the job run, need not be again."""
        key = repr(plan.levers)
        if purpose == "screen" and key in self._screened:
            return self._screened[key]
        # A step on more samples takes longer, and may be the better one.
        resized = any(one.lever == "batch_size" for one in plan.levers)
        limit = give_up_above if self._objective == "speed" and not resized else None
        stop = replace(self._stop, give_up_above=limit)
        trial = self.run(plan, purpose, stop)
        if is_worth_another_run(trial, self.record.trials):
            trial = self.run(plan, purpose, stop)
        score = score_of(trial, self._objective, self._whole)
        if purpose in ("screen", RESCUE):
            self._screened[key] = score
        return score

    def timed(self, plan: Plan, purpose: str, divisor: int) -> Figures | None:
        """On batches so many times smaller. None: it was not measured to the end."""
        trial = self.run(plan, purpose, self._stop, divisor=divisor)
        is_whole = trial.state is State.COMPLETE and trial.measurement is not None
        return figures(trial.measurement) if is_whole and trial.measurement else None

    def looked(self, plan: Plan) -> Trial:
        """Twice, if the script was too short for the usual way to see everything."""
        trial = self.run(plan, LOOK, self._stop, look=Look())
        again = another_look(trial)
        with contextlib.suppress(BudgetSpent):
            return trial if again is None else self.run(plan, LOOK, self._stop, look=again)
        return trial

    def diagnosed(self, diagnosis: Diagnosis, roof: Roof | None) -> None:
        self.record = replace(self.record, diagnosis=diagnosis, roof=roof)
        self._save()

    def soaked(self, plan: Plan, soak: Soak, purpose: str, divisor: int = 1) -> Trial:
        return self.run(plan, purpose, self._stop, soak=soak, divisor=divisor)

    def examined(self, plan: Plan, exam: Exam, purpose: str, divisor: int = 1) -> Trial:
        return self.run(plan, purpose, lengths.until_it_ends(exam), exam=exam, divisor=divisor)

    def examine_ahead(self, asked: Sequence[Asked]) -> None:
        """Side by side, to be found when it is their turn.

        Whatever came to nothing is run again then, by itself: others may have been in its way.
        """
        new = [one for one in asked if not self._is_at_hand(one)]
        if any(self._lacks_weights(one.exam) for one in new):  # perhaps they need not be run
            return
        if len(new) < 2 or self.left < self.record.trials[0].seconds:
            return
        number = len(self.record.trials) + 1
        self._audience.began(number, f"{len(new)} {SIDE_BY_SIDE}", Plan())
        placed = [Placed(self._order(at, one), one.share) for at, one in enumerate(new, number)]
        self._ahead.run(placed, self._launcher, self._audience.glimpsed, self.left, self._save)

    def run(
        self,
        plan: Plan,
        purpose: str,
        stop: StopRule,
        exam: Exam | None = None,
        soak: Soak | None = None,
        look: Look | None = None,
        divisor: int = 1,
    ) -> Trial:
        trial = self._replayed(plan, purpose, shared(exam, soak))
        if trial is None and self._lacks_weights(exam):
            raise WeightsGone
        if trial is None:
            trial = self._launched(plan, purpose, stop, exam, soak, look, divisor)
        if trial.state is State.INTERRUPTED:
            raise KeyboardInterrupt
        self.record = self.record.with_trial(trial)
        self._save()
        self._audience.ended(trial, self.record)
        if self._was_cut_short(trial):
            raise BudgetSpent
        return trial

    def _save(self) -> None:
        """Until there is a verdict, with what is still to be replayed: it may be stopped again."""
        is_over = self.record.found is not None and self.record.found.verdict
        left = (*self._ahead.trials, *self._earlier.trials)
        whole = replace(self.record, trials=(*self.record.trials, *(() if is_over else left)))
        study.save(whole, self.folder)

    def _replayed(self, plan: Plan, purpose: str, tied_to: str | None) -> Trial | None:
        """Evidence is kept: what it says does not need the weights any more that it began from."""
        wanted = plan, purpose, tied_to
        if (ready := self._ahead.take(*wanted)) is not None:
            return replace(ready, number=len(self.record.trials) + 1)
        if (trial := self._earlier.take(*wanted)) is None:
            return None
        if self._is_worth_another_look(trial):
            self.record = self.record.without_use(1, trial.cost)
            return None
        self._handed_out += trial.cost
        return replace(trial, number=len(self.record.trials) + 1)

    def _is_worth_another_look(self, trial: Trial) -> bool:
        """Without a baseline there is no search; and more time may be granted now than was then."""
        if trial.purpose == BASELINE:
            return trial.state is not State.COMPLETE
        return trial.state is State.TIMED_OUT and lengths.MORE * trial.seconds < self._limit()

    def _was_cut_short(self, trial: Trial) -> bool:
        """By the budget, not by the limit of a single run: that tells nothing of its plan."""
        is_early = trial.state is State.TIMED_OUT and trial.seconds < self._granted.limit
        return is_early and self.budget is not None and trial.purpose != BASELINE

    def _launched(
        self,
        plan: Plan,
        purpose: str,
        stop: StopRule,
        exam: Exam | None,
        soak: Soak | None,
        look: Look | None,
        divisor: int,
    ) -> Trial:
        limit = self._limit()
        if self.left < lengths.least_seconds(self.record.trials, plan, purpose):
            raise BudgetSpent
        if exam is not None and exam.is_reference:
            self._forget_reference()
            self._references.add(Path(exam.folder).name)
        number = len(self.record.trials) + 1
        folder = free_folder(self.folder, number)
        self._audience.began(number, purpose, plan)
        acting = replace(plan, at_once=plan.at_once or self._at_once)
        # Each step of an examination is compared with another run's; and of what the budget cuts
        # short, the first steps say little.
        in_part = exam is None and (limit == self._granted.limit or purpose in (BASELINE, LOOK))
        told = (number, self.job, acting, stop, limit, folder, purpose, exam, soak, look)
        order = Order(*told, divisor=divisor, in_part=in_part)
        trial = self._launcher.launch(order, self._audience.glimpsed)
        if trial.state is State.TIMED_OUT and limit < self._granted.limit:
            return replace(trial, reason=f"The budget left it {limit:.0f} s, which did not do.")
        return trial

    def _is_at_hand(self, asked: Asked) -> bool:
        wanted = asked.plan, asked.purpose, needed(asked.exam)
        return self._ahead.has(*wanted) or self._earlier.has(*wanted)

    def _order(self, number: int, asked: Asked) -> Order:
        """What is compiled for the first time while others use the GPU is not what is timed."""
        plan, exam = asked.plan, asked.exam
        is_known = plan.is_empty or repr(plan.levers) in self._screened
        caches = "cache" if is_known else "cache-side-by-side"
        folder, stop = free_folder(self.folder, number), lengths.until_it_ends(exam)
        told = (number, self.job, plan, stop, self._limit(), folder, asked.purpose, exam)
        return Order(*told, caches=caches, beside_others=True, in_part=False)

    def _limit(self) -> float:
        return min(self._granted.limit, self.left)

    def _lacks_weights(self, exam: Exam | None) -> bool:
        """A reference that was run here has saved what it could."""
        return are_gone(exam) and needed(exam) not in self._references

    def _forget_reference(self) -> None:
        """One that was killed, or is of no use; and what was examined ahead beside it."""
        clear(self.folder)
        self._ahead.forget()
