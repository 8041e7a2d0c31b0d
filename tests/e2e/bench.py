"""Plans of one script, examined in real child processes, where it misbehaves as it is told."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from hotloop import study
from hotloop.equivalence.judge import Equivalence
from hotloop.job import ScriptJob
from hotloop.plan import LeverSetting, Plan
from hotloop.study import Found, Options, Study
from hotloop.trial.launch import ProcessLauncher
from hotloop.trial.order import Glimpse, Order, Watcher
from hotloop.trial.trial import Trial
from hotloop.workshop.exam_steps import STEPS
from hotloop.workshop.examine import Examiner
from hotloop.workshop.granted import Granted
from hotloop.workshop.watching import Outlook
from hotloop.workshop.workshop import Workshop
from tests import builders

PLAN = Plan((LeverSetting("fused_optimizer", {}),))


class Planting:
    """Starts real processes; under the plan the script is told what to do wrong."""

    def __init__(self) -> None:
        self.harms: tuple[str, ...] = ()

    def launch(self, order: Order, watcher: Watcher) -> Trial:
        if order.purpose == "candidate":
            order = replace(order, job=replace(order.job, args=self.harms))
        return ProcessLauncher().launch(order, watcher)


class Nobody:
    """An audience that looks away."""

    def planned(self, study: Study, outlook: Outlook) -> None: ...

    def began(self, number: int, purpose: str, plan: Plan) -> None: ...

    def glimpsed(self, glimpse: Glimpse) -> None: ...

    def ended(self, trial: Trial, study: Study) -> None: ...


class Bench:
    """The examiner of one search: its witnesses are run once, however many plans it examines."""

    def __init__(self, base: Path, script: str) -> None:
        folder = base / "study"
        folder.mkdir()
        (base / "train.py").write_text(script)
        job = ScriptJob("train.py", False, (), sys.executable, str(base))
        record = study.begin("verify", job, builders.machine(), Found(Options()))
        self.launcher = Planting()
        granted = Granted(limit=120.0, budget=None, steps=None)
        workshop = Workshop(job, record, granted, folder, self.launcher, Nobody())
        self.examiner = Examiner(workshop, builders.measurement(), STEPS)

    def under(self, *harms: str) -> Equivalence:
        self.launcher.harms = harms
        self.examiner._equivalences.clear()  # it would not examine the same plan twice
        return self.examiner.examine(PLAN)
