"""`hotloop profile --depth`: how deep to look, and what is then shown below the screen."""

from __future__ import annotations

import argparse

TYPE_CHECKING = False  # see main
if TYPE_CHECKING:
    from pathlib import Path

    from hotloop.cli.live import Live
    from hotloop.job import ScriptJob
    from hotloop.study import Study
    from hotloop.trial.order import Launcher, Watcher

QUICK = "quick"
DEPTHS = (QUICK, "python", "torch", "kernel")


def add_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--depth",
        choices=DEPTHS,
        default=QUICK,
        help="one more run, under a profiler: python (functions, lines, growing memory), torch"
        " (operators, modules) or kernel (a trace for Perfetto and TensorBoard)",
    )


def run(
    record: Study,
    arguments: argparse.Namespace,
    folder: Path,
    launcher: Launcher,
    watcher: Watcher,
    live: Live,
) -> Study:
    """The study with that run, where one was asked for and the timed one came to its end."""
    from hotloop.deepen import deepen
    from hotloop.depth import Depth
    from hotloop.trial.trial import State

    timed = record.trials[0]
    if arguments.depth == QUICK or timed.state is not State.COMPLETE:
        return record
    live.say(f"profiling it, depth {arguments.depth}")
    kind = Depth(arguments.depth)
    limit = arguments.timeout
    return deepen(record, record.job, timed.plan, kind, folder, launcher, watcher, limit)


def parts(record: Study, folder: Path) -> dict[str, object]:
    """For JSON: the tables, and where each file lies."""
    from hotloop.deepen import deepened, report_of

    trial = deepened(record)
    if trial is None:
        return {}
    report = report_of(trial)
    place = folder / f"trial-{trial.number}"
    return {"depth": report, "files": {name: str(place / name) for name in report.files}}


def show(record: Study, job: ScriptJob, folder: Path) -> None:
    from hotloop.deepen import deepened, report_of

    trial = deepened(record)
    if trial is None:
        return
    from rich.console import Console

    from hotloop.report.depth_console import show_depth
    from hotloop.report.depth_rows import rows

    report = report_of(trial)
    found = rows(report, folder / f"trial-{trial.number}", job.cwd)
    show_depth(Console(), report.kind, found)
