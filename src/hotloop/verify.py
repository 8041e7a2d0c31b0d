"""`hotloop verify`: does a plan do the same training, over as many steps as one likes?"""

from __future__ import annotations

from pathlib import Path

from hotloop import machine, study
from hotloop.errors import PlanError
from hotloop.job import ScriptJob
from hotloop.plan import Plan
from hotloop.study import Found, Options, Study
from hotloop.trial.order import Launcher
from hotloop.workshop.examine import Examiner
from hotloop.workshop.granted import Granted
from hotloop.workshop.measured import measured
from hotloop.workshop.watching import Audience
from hotloop.workshop.workshop import Workshop


def verify(
    job: ScriptJob,
    plan: Plan,
    steps: int,
    limit_seconds: float,
    folder: Path,
    launcher: Launcher,
    audience: Audience,
) -> Study:
    if plan.is_empty:
        raise PlanError("The plan is empty: there is nothing to look at.", "Give another --plan.")
    options = Options(steps=steps)
    record = study.begin("verify", job, machine.describe(), Found(options))
    granted = Granted(limit_seconds, None, 5)
    workshop = Workshop(job, record, granted, folder, launcher, audience)
    measurement, _ = measured(workshop.baseline(), job, folder)
    examiner = Examiner(workshop, measurement, steps)
    try:
        equivalence = examiner.examine(Plan(plan.levers))
    finally:
        examiner.close()
    workshop.note(Found(options, equivalence=equivalence, plan=plan))
    return workshop.record
