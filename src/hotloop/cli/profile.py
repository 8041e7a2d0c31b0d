"""`hotloop profile`: how fast a script is, where each step's time goes and what limits it."""

from __future__ import annotations

import argparse
import sys

from hotloop.cli import common, deeper, diagnosing
from hotloop.cli import job as job_words

TYPE_CHECKING = False  # see main
if TYPE_CHECKING:
    from pathlib import Path

    from hotloop.cli.live import Live
    from hotloop.figures import Figures
    from hotloop.job import ScriptJob
    from hotloop.measurement import Measurement
    from hotloop.study import Study
    from hotloop.trial.trial import Trial

USAGE = "hotloop profile [options] (SCRIPT | -m MODULE) [ARGS…]"
DESCRIPTION = """\
Runs a training script for a short while, unmodified, in a process of its own, and says how fast it
is, where each step's time goes and how much memory it takes. A second short run looks for what
limits it, by file and line, and says what could be won. What the script saves, renames or
deletes meanwhile happens in scratch space: your files stay as they are.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--steps", type=common.positive, metavar="N", help="measure N steps (default: enough)"
    )
    parser.add_argument(
        "--repeat",
        type=common.times,
        default=1,
        metavar="N",
        help="time N processes, so that hotloop compare has an interval (default: 1)",
    )
    parser.add_argument("--plan", metavar="FILE", help="measure it under this hotloop.json")
    diagnosing.add_arguments(parser)
    deeper.add_argument(parser)
    common.add_trial_arguments(parser)
    job_words.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    return common.obeyed(arguments, _profile)


def _profile(arguments: argparse.Namespace, received: list[int]) -> int:
    from functools import partial
    from pathlib import Path

    from hotloop import plan, study
    from hotloop.cli import signals
    from hotloop.cli.live import Live
    from hotloop.profiling import profile, repeated
    from hotloop.trial.launch import ProcessLauncher
    from hotloop.trial.spec import StopRule

    chosen = plan.load(Path(arguments.plan)) if arguments.plan else plan.Plan()
    job = common.job_of(arguments)
    if received:
        return common.interrupted(received)
    folder = study.new_folder(Path(arguments.study).absolute(), job)
    stop = StopRule(steps=arguments.steps)
    with Live(job, stop, arguments.show_output, arguments.quiet) as live:
        watcher = signals.heeded(received, live)
        launcher = ProcessLauncher()
        record = profile(job, chosen, stop, arguments.timeout, folder, launcher, watcher)
        times, limit = arguments.repeat, arguments.timeout
        again = partial(_say_again, live, times)
        record = repeated(record, times, stop, limit, folder, launcher, watcher, again)
        record = diagnosing.run(record, arguments, folder, launcher, watcher, live, received)
        if not received:
            record = deeper.run(record, arguments, folder, launcher, watcher, live)
    if received:
        return common.interrupted(received, f" What was seen so far is in {folder}.")
    return common.reported(folder, lambda: _show(record, job, folder, arguments.json))


def _say_again(live: Live, times: int, number: int) -> None:
    live.say(f"timing it again, {number} of {times}")


def _show(record: Study, job: ScriptJob, folder: Path, as_json: bool) -> int:
    from hotloop import reporting
    from hotloop.report.diagnosis_rows import plain
    from hotloop.report.process_rows import processes
    from hotloop.trial.terminal import harmless
    from hotloop.workshop.measured import measured

    trial = record.trials[0]
    measurement, found = measured(trial, job, folder)
    report, page = reporting.leave(record, folder)
    if as_json:
        parts = {
            "figures": found,
            "memory": measurement.memory,
            "inventory": measurement.inventory,
            "software": measurement.software,
            "diagnosis": plain(record.diagnosis),
            "roof": record.roof,
            "machine": record.machine,
            "receipts": trial.receipts,
            "shielding": trial.shielding,
            "company": trial.company,
            "processes": processes(record),
            **deeper.parts(record, folder),
            "study": str(folder / "study.json"),
            "report": str(report),
        }
        common.print_json(parts)
        return 0
    _show_screen(record, trial, measurement, found, job, folder)
    deeper.show(record, job, folder)
    last = f"\n  {page.headline.big}, the report: {common.short(report)}\n"
    sys.stdout.write(harmless(last))
    return 0


def _show_screen(
    record: Study,
    trial: Trial,
    measurement: Measurement,
    found: Figures,
    job: ScriptJob,
    folder: Path,
) -> None:
    from dataclasses import replace

    from rich.console import Console

    from hotloop.report import diagnosis_rows, process_rows
    from hotloop.report.console import show_profile
    from hotloop.report.profile_rows import rows
    from hotloop.suggest import suggestions

    diagnosis, on_gpu = record.diagnosis, measurement.software.device != "cpu"
    # Findings name what addresses them; without them there is only what could help in general.
    worth = () if diagnosis else suggestions(measurement, found, record.machine.cores)
    told = rows(measurement, found, trial.shielding, trial.receipts, worth)
    show_profile(
        Console(),
        job.shown,
        measurement.software,
        replace(told, facts=(*process_rows.facts(record), *told.facts)),
        common.short(folder / "study.json"),
        f"hotloop optimize {common.command(job)}",
        diagnosis_rows.rows(diagnosis, job.cwd, on_gpu) if diagnosis else None,
    )
