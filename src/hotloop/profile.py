"""`hotloop profile`: one trial of the job as it is, measured."""

from __future__ import annotations

from pathlib import Path

from hotloop import machine, study
from hotloop.job import ScriptJob
from hotloop.plan import Plan
from hotloop.study import Study
from hotloop.trial.launch import Launcher, Order, Watcher
from hotloop.trial.spec import StopRule


def profile(
    job: ScriptJob,
    plan: Plan,
    stop: StopRule,
    limit_seconds: float,
    folder: Path,
    launcher: Launcher,
    watcher: Watcher,
) -> Study:
    """The study as it stands after the trial, however that ended, and saved in `folder`."""
    record = study.begin("profile", job, machine.describe())
    study.save(record, folder)
    order = Order(1, job, plan, stop, limit_seconds, folder / "trial-1")
    record = record.with_trial(launcher.launch(order, watcher))
    study.save(record, folder)
    return record
