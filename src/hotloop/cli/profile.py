"""`hotloop profile`: how fast a script is and where each step's time goes."""

from __future__ import annotations

import argparse
import os
import sys

from hotloop.cli import job as job_words

TYPE_CHECKING = False  # see main
if TYPE_CHECKING:
    from pathlib import Path

    from hotloop.job import ScriptJob
    from hotloop.study import Study
    from hotloop.trial.trial import Trial

SUMMARY = "measure a script: how fast it is and where each step's time goes"
USAGE = "hotloop profile [options] (SCRIPT | -m MODULE) [ARGS…]"
DESCRIPTION = """\
Runs a training script for a short while, unmodified, in a process of its own, and says how fast it
is, where each step's time goes and how much memory it takes. What the script saves, renames or
deletes meanwhile happens in scratch space: your files stay as they are.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--steps", type=_positive, metavar="N", help="measure N steps (default: enough)"
    )
    parser.add_argument(
        "--timeout",
        type=_duration,
        default=600.0,
        metavar="TIME",
        help="give up after this long, such as 90s, 10m or 1h (default: 10m)",
    )
    parser.add_argument("--plan", metavar="FILE", help="measure it under this hotloop.json")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument(
        "--study", metavar="DIR", default=".hotloop", help="keep studies here (default: .hotloop)"
    )
    parser.add_argument(
        "--show-output", action="store_true", help="let the script's output through (on stderr)"
    )
    job_words.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from hotloop.cli import signals
    from hotloop.errors import HotloopError

    # From the first import on: one that is broken off may leave a module that later crashes.
    with signals.noted() as received:
        try:
            return _profile(arguments, received)
        except HotloopError as error:
            if received:  # a Ctrl-C also reaches what we ask, and we then hear a wrong answer
                return _interrupted(received)
            if arguments.json:
                told = {"code": error.exit_code, "sentence": error.sentence, "remedy": error.remedy}
                _print_json({"error": told})
            raise


def _profile(arguments: argparse.Namespace, received: list[int]) -> int:
    from pathlib import Path

    from hotloop import plan, study
    from hotloop.cli import signals
    from hotloop.cli.live import Live
    from hotloop.profile import profile
    from hotloop.trial.launch import ProcessLauncher
    from hotloop.trial.spec import StopRule

    chosen = plan.load(Path(arguments.plan)) if arguments.plan else plan.Plan()
    job = _job(arguments)
    if received:
        return _interrupted(received)
    folder = study.new_folder(Path(arguments.study).absolute(), job)
    stop = StopRule(steps=arguments.steps)
    with Live(job, stop, arguments.show_output) as live:
        watcher = signals.heeded(received, live)
        record = profile(job, chosen, stop, arguments.timeout, folder, ProcessLauncher(), watcher)
    trial = record.trials[-1]
    if received:
        return _interrupted(received, f" What was seen so far is in {folder}.")
    return _show(record, trial, job, folder, arguments.json)


def _interrupted(received: list[int], what_is_left: str = "") -> int:
    from hotloop.trial.terminal import harmless

    sys.stderr.write(f"hotloop: Interrupted.{harmless(what_is_left)}\n")
    return 128 + received[0]


def _job(arguments: argparse.Namespace) -> ScriptJob:
    from hotloop import interpreter
    from hotloop.job import ScriptJob

    target, is_module, args = job_words.words_of(arguments)
    if not is_module:
        job_words.require_script(target)
    python = interpreter.find(arguments.python)
    cwd = os.getcwd()
    interpreter.require_torch(python, cwd)
    return ScriptJob(target, is_module, args, python, cwd)


def _show(record: Study, trial: Trial, job: ScriptJob, folder: Path, as_json: bool) -> int:
    from hotloop.errors import NothingMeasured
    from hotloop.figures import figures
    from hotloop.trial.failures import error_for
    from hotloop.trial.terminal import harmless

    printed = (folder / trial.log).read_text(encoding="utf-8", errors="replace")
    error = error_for(trial, job, harmless(printed))
    if error is not None:
        raise error
    assert trial.measurement is not None
    found = figures(trial.measurement)
    if found is None:
        raise NothingMeasured("Too few steps were seen to speak of a speed.", "Train longer.")
    if as_json:
        parts = {
            "figures": found,
            "memory": trial.measurement.memory,
            "inventory": trial.measurement.inventory,
            "software": trial.measurement.software,
            "machine": record.machine,
            "receipts": trial.receipts,
            "shielding": trial.shielding,
            "study": str(folder / "study.json"),
        }
        _print_json(parts)
        return 0
    _show_screen(record, trial, job, folder)
    return 0


def _show_screen(record: Study, trial: Trial, job: ScriptJob, folder: Path) -> None:
    from rich.console import Console

    from hotloop.figures import figures
    from hotloop.report.console import show_profile
    from hotloop.report.profile_rows import rows
    from hotloop.suggest import suggestions

    assert trial.measurement is not None
    found = figures(trial.measurement)
    assert found is not None
    worth = suggestions(trial.measurement, found, record.machine.cores)
    more = f"hotloop profile --steps {max(200, 4 * found.step.count)} {_command(job)}"
    show_profile(
        Console(),
        job.target,
        trial.measurement.software,
        rows(trial.measurement, found, trial.shielding, trial.receipts, worth),
        _short(folder / "study.json"),
        f"hotloop levers {worth[0].lever}" if worth else f"{more}   (tighter figures)",
    )


def _print_json(parts: dict[str, object]) -> None:
    from hotloop import codec

    sys.stdout.write(codec.encode({"version": 1, **parts}).decode() + "\n")


def _command(job: ScriptJob) -> str:
    import shlex

    words = (["-m"] if job.is_module else []) + [job.target, *job.args]
    return shlex.join(words)


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(os.getcwd()))
    except ValueError:
        return str(path)


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of steps")
    return int(text)


def _duration(text: str) -> float:
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:], 0.0)
    number = text[:-1] if unit else text
    try:
        seconds = float(number) * (unit or 1.0)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; 90s, 10m and 1h are")
    return seconds
