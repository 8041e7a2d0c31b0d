"""`hotloop optimize`: what a search does, from the first trial to the plan that is handed out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hotloop import machine, study
from hotloop.diagnose.case import case_of
from hotloop.diagnose.diagnosis import diagnose
from hotloop.equivalence.judge import Equivalence
from hotloop.errors import BudgetTooSmall, StudyMismatch
from hotloop.figures import Figures
from hotloop.inspection import Inspection
from hotloop.job import ScriptJob
from hotloop.measurement import Measurement
from hotloop.plan import Plan
from hotloop.roof import Roof
from hotloop.search.climb import BudgetSpent, Candidate, climb
from hotloop.search.proof import Proof, prove
from hotloop.study import Found, Options, Study
from hotloop.trial.launch import Launcher
from hotloop.trial.trial import State, Trial
from hotloop.workshop.examine import Examiner, steps_for
from hotloop.workshop.measured import measured
from hotloop.workshop.outlook import kept_back, outlook
from hotloop.workshop.promising import promising
from hotloop.workshop.refusals import refusals
from hotloop.workshop.soak import soak
from hotloop.workshop.watching import Audience
from hotloop.workshop.workshop import Granted, Workshop, score_of

RoofOf = Callable[[Measurement], Roof | None]
"""What the machine can do at most, for a job that was measured so."""

LOOK_FROM = 20.0
"""Times the first trial: with less time than that a search has none to spare for a diagnosis."""
PATIENCE = 10.0
"""Times the first trial: after so long without any gain a job has nothing to win."""


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
    record = study.begin("optimize", job, machine.describe(), found)
    granted = Granted(limit_seconds, options.budget, options.steps)
    before = earlier.trials if earlier is not None else ()
    workshop = Workshop(job, record, granted, folder, launcher, audience, before)
    return _Optimization(workshop, options, audience, roof).run(dry_run)


class _NoPlan(Exception):
    """Nothing is handed out. Says why, in a sentence."""


class _Optimization:
    def __init__(
        self, workshop: Workshop, options: Options, audience: Audience, roof: RoofOf
    ) -> None:
        self._roof = roof
        self._workshop = workshop
        self._options = options
        self._audience = audience
        self._excluded: dict[str, str] = {}
        """Optimisations that change the training, and how."""

    def run(self, dry_run: bool) -> Study:
        baseline, measurement, figures = self._measure_the_job()
        inspection = self._diagnose(baseline, measurement, figures)
        candidates = self._choose_candidates(measurement, figures, baseline, inspection)
        if dry_run:
            return self._workshop.record
        examiner = Examiner(self._workshop, measurement, steps_for(figures.step.p50, baseline))
        try:
            plan = self._best_that_trains_the_same(baseline, figures, candidates, examiner)
            proof = self._prove(plan)
            self._examine_what_is_left(proof.plan, plan, examiner)
            self._soak(proof.plan)
            self._hand_out(proof, baseline)
        except _NoPlan as reason:
            self._conclude(str(reason))
        except BudgetSpent:
            self._conclude(
                "The time granted was over before anything was proven. "
                "--resume with a larger --budget goes on."
            )
        examiner.close()
        return self._workshop.record

    def _measure_the_job(self) -> tuple[Trial, Measurement, Figures]:
        trial = self._workshop.baseline()
        budget = self._workshop.budget
        if trial.state is State.TIMED_OUT and budget is not None and trial.seconds >= budget:
            raise BudgetTooSmall(
                f"The job could not even be measured as it is within {budget:g} seconds.",
                "Grant more with --budget, or fewer steps with --steps.",
            )
        measurement, figures = measured(trial, self._workshop.job, self._workshop.folder)
        self._workshop.measure_by(figures)
        return trial, measurement, figures

    def _diagnose(
        self, baseline: Trial, measurement: Measurement, figures: Figures
    ) -> Inspection | None:
        """What limits the job: one more trial, where there is time for a search afterwards."""
        workshop = self._workshop
        budget = workshop.budget
        if not self._options.look or (budget and budget < LOOK_FROM * baseline.seconds):
            return None
        looked = workshop.looked()
        if looked.inspection is None:
            return None
        roof = self._roof(measurement)
        case = case_of(measurement, figures, workshop.record.machine, looked, roof, baseline.power)
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
        candidates, refused = promising(
            measurement, figures, hardware.cores, self._options, diagnosis, inspection, hardware
        )
        self._note(candidates=candidates, refused=refused)
        self._audience.planned(self._workshop.record, outlook(candidates, baseline.seconds))
        return candidates

    def _best_that_trains_the_same(
        self,
        baseline: Trial,
        figures: Figures,
        candidates: tuple[Candidate, ...],
        examiner: Examiner,
    ) -> Plan:
        """Searches again without what changes the training, until nothing does."""
        workshop = self._workshop
        start = score_of(baseline, self._options.objective).value or figures.step.mean
        patience = PATIENCE * baseline.seconds
        while True:
            left = [one for one in candidates if one.lever not in self._excluded]
            workshop.keep_back(kept_back(workshop.budget, baseline.seconds))
            found = climb(start, left, workshop, patience)
            workshop.keep_back(0.0)
            self._note(climb=found)
            if found.plan.is_empty:
                raise _NoPlan(self._nothing())
            equivalence = examiner.examine(found.plan)
            self._note(equivalence=equivalence)
            if equivalence.same:
                return found.plan
            self._exclude(found.plan, equivalence, examiner)
            # What was spent until here was not spent in vain, and does not count against the rest.
            patience = workshop.spent + PATIENCE * baseline.seconds

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

    def _prove(self, plan: Plan) -> Proof:
        proof = prove(plan, self._workshop)
        self._note(proof=proof)
        if not proof.comparison.faster:
            reason = proof.comparison.reason
            raise _NoPlan(f"{self._nothing()} The best plan found did not hold: {reason}.")
        return proof

    def _examine_what_is_left(self, plan: Plan, examined: Plan, examiner: Examiner) -> None:
        """Without its passengers it is a plan that nobody has looked at."""
        if plan == examined:
            return
        equivalence = examiner.examine(plan)
        self._note(equivalence=equivalence)
        if not equivalence.same:
            raise _NoPlan(f"No plan is handed out: {equivalence.reasons[0]}.")

    def _soak(self, plan: Plan) -> None:
        soaked = soak(plan, self._workshop.soaked, self._workshop.folder)
        self._note(soaked=soaked)
        if not soaked.passed:
            raise _NoPlan(f"No plan is handed out: it is faster, but {soaked.reason}.")

    def _hand_out(self, proof: Proof, baseline: Trial) -> None:
        software = baseline.measurement.software if baseline.measurement else None
        plan = replace(
            proof.plan,
            script=self._workshop.job.source_digest(),
            torch=software.torch if software else "",
            gpu=software.device if software else "",
        )
        self._note(plan=plan)
        better = "faster" if self._options.objective == "speed" else "less memory"
        self._conclude(f"{proof.comparison.ratio:.2f}× {better}, and the same training.")

    def _nothing(self) -> str:
        climbed = self._found.climb
        tried = (
            {lever for one in climbed.tried for lever in one.lever.split("+")} if climbed else ()
        )
        goal = "faster" if self._options.objective == "speed" else "smaller"
        words = {0: "no optimisation", 1: "1 optimisation"}
        count = words.get(len(tried), f"{len(tried)} optimisations")
        return f"Nothing was found that makes this job {goal}: {count} tried."

    def _conclude(self, verdict: str) -> None:
        trials = self._workshop.record.trials
        self._note(verdict=verdict, refused=refusals(self._found, self._excluded, trials))

    @property
    def _found(self) -> Found:
        found = self._workshop.record.found
        assert found is not None
        return found

    def _note(self, **changes: object) -> None:
        self._workshop.note(replace(self._found, **changes))  # type: ignore[arg-type]
