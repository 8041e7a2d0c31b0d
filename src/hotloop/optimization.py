"""`hotloop optimize`: what a search does, from the first trial to the plan that is handed out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hotloop import machine, study
from hotloop.diagnose.case import case_of
from hotloop.diagnose.diagnosis import diagnose
from hotloop.errors import BudgetTooSmall, StudyMismatch
from hotloop.figures import Figures
from hotloop.inspection import Inspection
from hotloop.job import ScriptJob
from hotloop.measurement import Measurement
from hotloop.plan import Plan
from hotloop.roof import Roof
from hotloop.search.candidate import Candidate
from hotloop.search.climb import BudgetSpent
from hotloop.search.interactions import names
from hotloop.search.proof import prove
from hotloop.study import Found, Options, Study
from hotloop.trial.order import Launcher
from hotloop.trial.trial import State, Trial
from hotloop.workshop import rescuing, rungs
from hotloop.workshop.choosing import Choice
from hotloop.workshop.examine import Examiner
from hotloop.workshop.footing import Footing, NoPlan
from hotloop.workshop.granted import Granted
from hotloop.workshop.lengths import whole_training
from hotloop.workshop.measured import measured
from hotloop.workshop.outlook import Later, after_the_proof, once_more, outlook, without_passengers
from hotloop.workshop.promising import promising
from hotloop.workshop.refusals import nothing_found, refusals
from hotloop.workshop.rescuing import Rescued
from hotloop.workshop.resizing import BATCH, resize
from hotloop.workshop.scores import score_of, undisturbed
from hotloop.workshop.watching import Audience
from hotloop.workshop.workshop import Workshop

RoofOf = Callable[[Measurement], Roof | None]
"""What the machine can do at most, for a job that was measured so."""

LOOK_FROM = 12.0
"""Times the first trial: with less time than that a search has none to spare for a diagnosis. It
takes less than one trial, and without it much is not tried, or in vain."""


def optimize(
    job: ScriptJob,
    options: Options,
    limit_seconds: float,
    folder: Path,
    launcher: Launcher,
    audience: Audience,
    dry_run: bool = False,
    earlier: Study | None = None,
    roof: RoofOf = lambda measurement: None,
) -> Study:
    """The study as it stands at the end, also when nothing was won. Saved after every trial."""
    if earlier is not None and earlier.job_digest != job.digest():
        raise StudyMismatch(
            f"The study in {folder} is of another job: {' '.join(earlier.job.command)}.",
            "Give the same script and arguments, or begin anew without --resume.",
        )
    found = Found(options, warnings=machine.gpu_neighbours())
    record = study.begin("optimize", job, machine.describe(), found, earlier)
    granted = Granted(limit_seconds, options.budget, options.steps)
    before = earlier.trials if earlier else ()
    workshop = Workshop(job, record, granted, folder, launcher, audience, before)
    return _Optimization(workshop, options, audience, roof).run(dry_run)


OUT_OF_TIME = (
    "The time granted was over before anything was proven. --resume with a larger --budget goes on."
)


class _Optimization:
    def __init__(
        self, workshop: Workshop, options: Options, audience: Audience, roof: RoofOf
    ) -> None:
        self._roof = roof
        self._workshop = workshop
        self._options = options
        self._audience = audience
        self._footing = Footing(workshop, options)
        self._examiner: Examiner | None = None
        self._choice = Choice(workshop)

    def run(self, dry_run: bool) -> Study:
        baseline = self._run_the_job()
        starves = baseline.state is State.OUT_OF_MEMORY and self._options.objective == "memory"
        if starves and dry_run:
            return self._say_what_could_make_it_run(baseline)
        try:
            if starves:
                baseline = self._make_it_run(baseline)
            self._search(baseline, dry_run)
        except NoPlan as reason:
            self._conclude(str(reason))
        except BudgetSpent:
            self._conclude(OUT_OF_TIME)
        if self._examiner is not None:
            self._examiner.close(goes_on=self._footing.found.verdict == OUT_OF_TIME)
        return self._workshop.record

    def _search(self, baseline: Trial, dry_run: bool) -> None:
        measurement, figures = measured(baseline, self._workshop.job, self._workshop.folder)
        self._workshop.measure_by(figures, whole_training(baseline))
        looked = self._look(baseline)
        baseline = self._undisturbed(baseline, looked)
        measurement, figures = measured(baseline, self._workshop.job, self._workshop.folder)
        inspection = self._diagnose(baseline, measurement, figures, looked)
        candidates = self._choose_candidates(measurement, figures, baseline, inspection)
        if dry_run:
            return
        self._examiner = examiner = self._footing.examiner(measurement, figures, baseline)
        examiner.changing = frozenset(one.lever for one in candidates if one.changes_training)
        self._footing.settle(examiner)
        best = self._best_that_trains_the_same(baseline, figures, candidates, examiner)
        best = self._resize(best, baseline, candidates, examiner)
        plan = self._prove(best)
        self._examine_what_is_left(plan, best, examiner)
        self._soak(plan)
        rungs.measure(plan, self._footing.found.climb, self._workshop)
        self._hand_out(plan, baseline)

    def _run_the_job(self) -> Trial:
        trial = self._workshop.baseline()
        budget = self._workshop.budget
        if trial.state is State.TIMED_OUT and self._workshop.is_bound_by_budget:
            raise BudgetTooSmall(
                f"The job could not even be measured as it is within {budget:g} seconds.",
                "Grant more with --budget, or fewer steps with --steps.",
            )
        return trial

    def _say_what_could_make_it_run(self, starved: Trial) -> Study:
        candidates = rescuing.candidates(self._options, starved)
        self._note(candidates=candidates)
        self._audience.planned(self._workshop.record, outlook(candidates, once_more(starved)))
        return self._workshop.record

    def _make_it_run(self, starved: Trial) -> Trial:
        """The trial of the least costly plan that runs: what the search stands on from here on."""
        self._footing = rescued = Rescued(self._workshop, self._options)
        return rescued.make_it_run(starved)

    def _look(self, baseline: Trial) -> Trial | None:
        """One more trial, where there is time for a search afterwards."""
        budget = self._workshop.budget
        if not self._options.look or (budget and budget < LOOK_FROM * once_more(baseline)):
            return None
        try:
            looked = self._workshop.looked(self._footing.plan)
        except BudgetSpent:  # a search can do without
            return None
        return None if looked.inspection is None else looked

    def _undisturbed(self, baseline: Trial, looked: Trial | None) -> Trial:
        footing = self._footing
        return undisturbed(baseline, looked, footing.options.objective, footing.baseline)

    def _diagnose(
        self, baseline: Trial, measurement: Measurement, figures: Figures, looked: Trial | None
    ) -> Inspection | None:
        """What limits the job."""
        if looked is None:
            return None
        workshop, roof = self._workshop, self._roof(measurement)
        case = case_of(measurement, figures, workshop.record.machine, looked, roof, baseline)
        workshop.diagnosed(diagnose(case), roof)
        return looked.inspection

    def _choose_candidates(
        self,
        measurement: Measurement,
        figures: Figures,
        baseline: Trial,
        inspection: Inspection | None,
    ) -> tuple[Candidate, ...]:
        hardware = self._workshop.record.machine
        diagnosis = self._workshop.record.diagnosis
        options, needed = self._footing.options, names(self._footing.plan)
        known = promising(
            measurement, figures, hardware.cores, options, diagnosis, inspection, hardware, needed
        )
        candidates = tuple(one for one in known[0] if one.lever not in needed)
        refused = tuple(one for one in known[1] if one.lever not in needed)
        self._note(candidates=candidates, refused=refused)
        self._audience.planned(self._workshop.record, outlook(candidates, once_more(baseline)))
        return candidates

    def _best_that_trains_the_same(
        self,
        baseline: Trial,
        figures: Figures,
        candidates: tuple[Candidate, ...],
        examiner: Examiner,
    ) -> Plan:
        footing = self._footing
        start = score_of(baseline, footing.options.objective).value or figures.step.mean
        others = [one for one in candidates if one.lever != BATCH]
        plan = self._choice.best(others, baseline, start, footing, examiner)
        if plan == footing.plan and len(others) == len(candidates):
            return footing.instead(self._nothing())
        return plan

    def _resize(
        self, plan: Plan, baseline: Trial, candidates: tuple[Candidate, ...], examiner: Examiner
    ) -> Plan:
        """Last of all, on what makes the job fast: another batch, where the user allows it."""
        if not any(one.lever == BATCH for one in candidates):
            return plan
        curve, resized = resize(plan, baseline, self._workshop)
        self._note(sizes=curve)
        if resized == self._footing.plan:
            return self._footing.instead(self._nothing())
        self._note(equivalence=examiner.examine(resized))
        return resized

    def _prove(self, plan: Plan) -> Plan:
        """What is left of it without passengers."""
        if plan == self._footing.plan:
            return plan
        workshop, start = self._workshop, self._footing.plan
        workshop.keep_back(after_the_proof(plan, start, self._choice.endured))
        later = without_passengers(plan, start)
        proof = prove(plan, workshop, start, lambda: workshop.keep_back(later))
        workshop.keep_back(Later())
        self._note(proof=proof)
        if proof.comparison.faster:
            return proof.plan
        reason = proof.comparison.reason
        return self._footing.instead(
            f"{self._nothing()} The best plan found did not hold: {reason}."
        )

    def _examine_what_is_left(self, plan: Plan, examined: Plan, examiner: Examiner) -> None:
        """Without its passengers it is a plan that nobody has looked at."""
        if plan == examined and plan != self._footing.plan:
            return
        equivalence = self._footing.examined(plan, examiner)
        self._note(equivalence=equivalence)
        if equivalence is not None and not equivalence.same:
            raise NoPlan(f"No plan is handed out: {equivalence.reasons[0]}.")

    def _soak(self, plan: Plan) -> None:
        """Again, where passengers have left or batches are larger since it was chosen."""
        if plan == self._choice.endured:
            return
        soaked = self._footing.soaked(plan)
        self._note(soaked=soaked)
        if not soaked.passed:
            good = self._footing.good
            raise NoPlan(f"No plan is handed out: it {good}, but {soaked.reason}.")

    def _hand_out(self, plan: Plan, baseline: Trial) -> None:
        software = baseline.measurement.software if baseline.measurement else None
        verdict = self._footing.verdict(plan)
        plan = replace(
            plan,
            script=self._workshop.job.source_digest(),
            torch=software.torch if software else "",
            gpu=software.device if software else "",
            at_once=self._footing.at_once,
        )
        self._note(plan=plan)
        self._conclude(verdict)

    def _nothing(self) -> str:
        return nothing_found(self._footing.found, self._choice.excluded, self._choice.unfit)

    def _conclude(self, verdict: str) -> None:
        found, chosen, trials = self._footing.found, self._choice, self._workshop.record.trials
        refused = refusals(found, chosen.excluded, trials, chosen.unexamined, chosen.unfit)
        self._note(verdict=verdict, refused=refused)

    def _note(self, **changes: object) -> None:
        self._footing.note(**changes)
