"""`hotloop optimize`: what a search does, from the first trial to the plan that is handed out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hotloop import machine, study
from hotloop.equivalence import Equivalence
from hotloop.errors import BudgetTooSmall, StudyMismatch
from hotloop.examine import Examiner, steps_for
from hotloop.figures import Figures
from hotloop.job import ScriptJob
from hotloop.measured import measured
from hotloop.measurement import Measurement
from hotloop.plan import Plan
from hotloop.promising import promising
from hotloop.proof import prove
from hotloop.search import BudgetSpent, Candidate, climb
from hotloop.soak import soak
from hotloop.study import Found, Options, Refused, Study
from hotloop.trial.launch import Launcher
from hotloop.trial.trial import State, Trial
from hotloop.watching import Audience, Outlook
from hotloop.workshop import Granted, Workshop, score_of

PATIENCE = 10.0
"""Times the first trial: after so long without any gain a job has nothing to win."""
RUNS_TO_PROVE = 10
RUNS_TO_EXAMINE = 7
RUNS_TO_SOAK = 3


def optimize(
    job: ScriptJob,
    options: Options,
    limit_seconds: float,
    folder: Path,
    launcher: Launcher,
    audience: Audience,
    dry_run: bool = False,
    earlier: Study | None = None,
) -> Study:
    """The study as it stands at the end, also when nothing was won. Saved after every trial."""
    if earlier is not None and earlier.job_digest != job.digest():
        raise StudyMismatch(
            f"The study in {folder} is of another job: {' '.join(earlier.job.argv())}.",
            "Give the same script and arguments, or begin anew without --resume.",
        )
    found = Found(options, warnings=machine.gpu_neighbours())
    record = study.begin("optimize", job, machine.describe(), found)
    granted = Granted(limit_seconds, options.budget, options.steps)
    before = earlier.trials if earlier is not None else ()
    workshop = Workshop(job, record, granted, folder, launcher, audience, before)
    return _Optimization(workshop, options, audience).run(dry_run)


class _Optimization:
    def __init__(self, workshop: Workshop, options: Options, audience: Audience) -> None:
        self._workshop = workshop
        self._options = options
        self._audience = audience
        self._excluded: dict[str, str] = {}
        """Optimisations that change the training, and how."""

    def run(self, dry_run: bool) -> Study:
        baseline, measurement, figures = self._measure_the_job()
        candidates, refused = promising(
            measurement, figures, self._workshop.record.machine.cores, self._options
        )
        self._note(candidates=candidates, refused=refused)
        outlook = outlook_of(candidates, baseline.seconds)
        self._audience.planned(self._workshop.record, outlook)
        if dry_run:
            return self._workshop.record
        steps = steps_for(figures.step.p50, baseline)
        examiner = Examiner(self._workshop, measurement, steps)
        try:
            self._search(baseline, figures, candidates, examiner)
        except BudgetSpent:
            self._conclude(
                "The time granted was over before anything was proven. --resume goes on."
            )
        examiner.close()
        return self._workshop.record

    def _measure_the_job(self) -> tuple[Trial, Measurement, Figures]:
        trial = self._workshop.baseline()
        budget = self._workshop.budget
        if trial.state is State.TIMED_OUT and budget is not None and trial.seconds >= budget:
            raise BudgetTooSmall(
                f"The job could not even be measured as it is within {budget:.0f} seconds.",
                "Grant more with --budget, or fewer steps with --steps.",
            )
        measurement, figures = measured(trial, self._workshop.job, self._workshop.folder)
        self._workshop.measure_by(figures)
        return trial, measurement, figures

    def _search(
        self,
        baseline: Trial,
        figures: Figures,
        candidates: tuple[Candidate, ...],
        examiner: Examiner,
    ) -> None:
        plan, equivalence = self._best_that_trains_the_same(baseline, figures, candidates, examiner)
        if plan.is_empty or equivalence is None:
            self._conclude(self._nothing())
            return
        proof = prove(plan, self._workshop)
        self._note(proof=proof)
        if not proof.comparison.faster:
            self._conclude(
                f"{self._nothing()} The best plan found did not hold: {proof.comparison.reason}."
            )
            return
        if proof.plan != plan:
            equivalence = examiner.examine(proof.plan)
            self._note(equivalence=equivalence)
            if not equivalence.same:
                self._conclude(f"No plan is handed out: {equivalence.reasons[0]}.")
                return
        soaked = soak(proof.plan, self._workshop.soaked, self._workshop.folder)
        self._note(soaked=soaked)
        if not soaked.passed:
            self._conclude(f"No plan is handed out: it is faster, but {soaked.reason}.")
            return
        self._note(plan=self._made_for_this(proof.plan, baseline))
        better = "faster" if self._options.objective == "speed" else "less memory"
        self._conclude(f"{proof.comparison.ratio:.2f}× {better}, and the same training.")

    def _best_that_trains_the_same(
        self,
        baseline: Trial,
        figures: Figures,
        candidates: tuple[Candidate, ...],
        examiner: Examiner,
    ) -> tuple[Plan, Equivalence | None]:
        """Searches again without what changes the training, until nothing does."""
        workshop = self._workshop
        start = baseline_value(workshop, baseline, figures)
        while True:
            left = [one for one in candidates if one.lever not in self._excluded]
            workshop.keep_back(self._reserve(baseline.seconds))
            found = climb(start, left, workshop, PATIENCE * baseline.seconds)
            workshop.keep_back(0.0)
            self._note(climb=found)
            if found.plan.is_empty:
                return found.plan, None
            equivalence = examiner.examine(found.plan)
            self._note(equivalence=equivalence)
            if equivalence.same:
                return found.plan, equivalence
            self._exclude(found.plan, equivalence, examiner)

    def _exclude(self, plan: Plan, whole: Equivalence, examiner: Examiner) -> None:
        """Whatever differs by itself; if only their combination does, the last one found."""
        alone = {one.lever: Plan((one,)) for one in plan.levers}
        if len(alone) > 1:
            judged = {lever: examiner.examine(single) for lever, single in alone.items()}
            self._excluded |= {
                lever: each.reasons[0] for lever, each in judged.items() if not each.same
            }
        if not self._excluded.keys() & alone.keys():
            self._excluded[plan.levers[-1].lever] = whole.reasons[0]

    def _reserve(self, seconds: float) -> float:
        """Of the budget, for what comes after the climb; but the climb is not to starve."""
        budget = self._workshop.budget or 0.0
        needed = (RUNS_TO_PROVE + RUNS_TO_EXAMINE + RUNS_TO_SOAK) * seconds
        return min(needed, 0.7 * budget)

    def _made_for_this(self, plan: Plan, baseline: Trial) -> Plan:
        software = baseline.measurement.software if baseline.measurement else None
        return replace(
            plan,
            script=self._workshop.job.source_digest(),
            torch=software.torch if software else "",
            gpu=software.device if software else "",
        )

    def _nothing(self) -> str:
        tried = {one.lever for one in self._found.climb.tried} if self._found.climb else set()
        goal = "faster" if self._options.objective == "speed" else "smaller"
        count = (
            "no optimisation"
            if not tried
            else ("1 optimisation" if len(tried) == 1 else f"{len(tried)} optimisations")
        )
        return f"Nothing was found that makes this job {goal}: {count} tried."

    @property
    def _found(self) -> Found:
        found = self._workshop.record.found
        assert found is not None
        return found

    def _note(self, **changes: object) -> None:
        self._workshop.note(replace(self._found, **changes))  # type: ignore[arg-type]

    def _conclude(self, verdict: str) -> None:
        self._note(verdict=verdict, refused=self._refusals())

    def _refusals(self) -> tuple[Refused, ...]:
        """Everything that is not in the plan: what never could help, what did not, and why."""
        found = self._found
        plan = found.plan or Plan()
        kept = {one.lever for one in plan.levers}
        reasons: dict[str, str] = {}
        for one in found.climb.tried if found.climb else ():
            for lever in one.lever.split("+"):
                reasons[lever] = one.reason or reasons.get(lever, "it was not proven to help")
        for passenger in found.proof.removed if found.proof else ():
            reasons[passenger.lever] = f"a passenger: {passenger.comparison.reason}"
        reasons |= {
            lever: f"it changes the training: {why}" for lever, why in self._excluded.items()
        }
        never = [one for one in found.refused if not one.tried]
        tried = [
            Refused(lever, reason, True, self._cost(lever))
            for lever, reason in reasons.items()
            if lever not in kept
        ]
        return (*never, *tried)

    def _cost(self, lever: str) -> float:
        """Of the trials that tried it."""
        climbed = self._found.climb
        plans = (
            [one.plan.levers for one in climbed.tried if lever in one.lever.split("+")]
            if (climbed)
            else []
        )
        return sum(
            trial.seconds
            for trial in self._workshop.record.trials
            if trial.purpose == "screen" and trial.plan.levers in plans
        )


def baseline_value(workshop: Workshop, baseline: Trial, figures: Figures) -> float:
    options = workshop.record.found.options if workshop.record.found else Options()
    return score_of(baseline, options.objective).value or figures.step.mean


def outlook_of(candidates: tuple[Candidate, ...], seconds: float) -> Outlook:
    """At the least nothing helps; at the most everything does, and is proven one by one."""
    settings = sum(len(one.settings) for one in candidates)
    if not candidates:
        return Outlook((1, 1), (seconds, seconds))
    rounds = RUNS_TO_PROVE + 5 * len(candidates)
    most = 1 + 2 * settings + rounds + RUNS_TO_EXAMINE + RUNS_TO_SOAK
    return Outlook((1 + settings, most), ((1 + settings) * seconds, most * seconds))
