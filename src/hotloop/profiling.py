"""`hotloop profile`: the job as it is, timed; and then looked into, to say what limits it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hotloop import machine, study
from hotloop.diagnose.case import case_of
from hotloop.diagnose.diagnosis import diagnose
from hotloop.diagnose.footprint import WORLD_AVERAGE
from hotloop.figures import figures
from hotloop.job import ScriptJob
from hotloop.plan import Plan
from hotloop.roof import Roof
from hotloop.study import Study
from hotloop.trial.order import Launcher, Order, Watcher
from hotloop.trial.spec import Look, StopRule
from hotloop.trial.trial import State, Trial
from hotloop.workshop.short_scripts import another_look
from hotloop.workshop.workshop import LOOK

REPEAT = "repeat"


def profile(
    job: ScriptJob,
    plan: Plan,
    stop: StopRule,
    limit_seconds: float,
    folder: Path,
    launcher: Launcher,
    watcher: Watcher,
) -> Study:
    """The study as it stands after the timed trial, however that ended, and saved in `folder`."""
    record = study.begin("profile", job, machine.describe())
    study.save(record, folder)
    order = Order(1, job, plan, stop, limit_seconds, folder / "trial-1")
    record = record.with_trial(launcher.launch(order, watcher))
    study.save(record, folder)
    return record


def repeated(
    record: Study,
    times: int,
    stop: StopRule,
    limit_seconds: float,
    folder: Path,
    launcher: Launcher,
    watcher: Watcher,
    begins: Callable[[int], None],
) -> Study:
    """Timed so often in all, each in a process of its own, unless one fails or is stopped.

    Processes differ by more than steps do. `begins` is told which one follows.
    """
    while len(record.trials) < times and record.trials[-1].state is State.COMPLETE:
        number, plan = len(record.trials) + 1, record.trials[0].plan
        begins(number)
        place = folder / f"trial-{number}"
        order = Order(number, record.job, plan, stop, limit_seconds, place, REPEAT)
        record = record.with_trial(launcher.launch(order, watcher))
        study.save(record, folder)
    return record


def look(
    record: Study,
    job: ScriptJob,
    limit_seconds: float,
    folder: Path,
    launcher: Launcher,
    watcher: Watcher,
    how: Look | None = None,
) -> Study:
    """One more trial, of the plan that was timed, which nobody times; two of a short script."""
    timed = record.trials[0]
    if timed.state is not State.COMPLETE:
        return record
    next_look: Look | None = how or Look()
    for _ in range(2):
        if next_look is None:
            break
        number = len(record.trials) + 1
        place = folder / f"trial-{number}"
        stop = StopRule()
        order = Order(number, job, timed.plan, stop, limit_seconds, place, LOOK, look=next_look)
        record = record.with_trial(launcher.launch(order, watcher))
        study.save(record, folder)
        next_look = another_look(record.trials[-1])
    return record


def diagnosed(
    record: Study,
    roof: Callable[[], Roof | None],
    folder: Path,
    grams_per_kwh: float = WORLD_AVERAGE,
) -> Study:
    """With what limits the job, as far as its trials show it. The roof is asked for last."""
    timed = record.trials[0]
    found = figures(timed.measurement) if timed.measurement else None
    if timed.measurement is None or found is None:
        return record
    record = replace(record, roof=roof())
    case = case_of(
        timed.measurement, found, record.machine, looked_into(record), record.roof, timed
    )
    record = replace(record, diagnosis=diagnose(case, grams_per_kwh))
    study.save(record, folder)
    return record


def looked_into(record: Study) -> Trial | None:
    """The last, of several: it was made to see more."""
    looked = [trial for trial in record.trials if trial.inspection is not None]
    return looked[-1] if looked else None
