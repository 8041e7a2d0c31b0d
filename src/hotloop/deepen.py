"""`hotloop profile --depth`: one more trial of the job, under a profiler."""

from __future__ import annotations

import csv
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hotloop import study
from hotloop.depth import Depth, DepthReport
from hotloop.errors import StudyNotWritable
from hotloop.job import ScriptJob
from hotloop.plan import Plan
from hotloop.study import Study
from hotloop.trial.order import Launcher, Order, Watcher
from hotloop.trial.spec import Deep, StopRule
from hotloop.trial.trial import State, Trial

PURPOSE = "depth-"
STEPS = {Depth.PYTHON: 20, Depth.TORCH: 4, Depth.KERNEL: 4}
"""A trace of more than a few steps is too large for its viewers."""


def deepen(
    record: Study,
    job: ScriptJob,
    plan: Plan,
    kind: Depth,
    folder: Path,
    launcher: Launcher,
    watcher: Watcher,
    limit_seconds: float,
) -> Study:
    """The study with that trial, however it ended, and saved in `folder`."""
    number = len(record.trials) + 1
    place = folder / f"trial-{number}"
    deep = Deep(kind.value, str(place), steps=STEPS[kind])
    purpose = PURPOSE + kind.value
    order = Order(number, job, plan, StopRule(), limit_seconds, place, purpose, deep=deep)
    trial = launcher.launch(order, watcher)
    if trial.deep is not None:
        written = write_tables(trial.deep, place)
        trial = replace(trial, deep=replace(trial.deep, files=[*trial.deep.files, *written]))
    record = record.with_trial(trial)
    study.save(record, folder)
    return record


def deepened(record: Study) -> Trial | None:
    """The trial under a profiler, if there was one."""
    return next((one for one in record.trials if one.purpose.startswith(PURPOSE)), None)


def report_of(trial: Trial) -> DepthReport:
    """What the trial shows; of one that did not complete, that and why it did not."""
    kind = trial.purpose.removeprefix(PURPOSE)
    report = trial.deep or DepthReport(kind)
    if trial.state in (State.COMPLETE, State.NOTHING_MEASURED):
        return report
    why = f"The run under the profiler did not come to its end. {trial.reason}"
    return replace(report, problems=[why, *report.problems])


def write_tables(report: DepthReport, place: Path) -> list[str]:
    """The tables that no file of another tool's holds, whole. Returns the files' names."""
    table = report.operators
    tables: dict[str, list[dict[str, Any]]] = {
        "operators.csv": [asdict(row) for row in table.operators] if table else [],
        "modules.csv": [asdict(row) for row in table.modules] if table else [],
        "memory.csv": [
            {"device": one.device, "seconds": seconds, "allocated_bytes": allocated}
            for one in report.memory
            for seconds, allocated in zip(one.seconds, one.allocated, strict=True)
        ],
    }
    written = {name: rows for name, rows in tables.items() if rows}
    for name, rows in written.items():
        _write(place / name, rows)
    return list(written)


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    try:
        with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    except OSError as error:
        raise StudyNotWritable(
            f"{path} cannot be written: {error.strerror}.",
            "Free some space, or name another folder with --study.",
        ) from None
