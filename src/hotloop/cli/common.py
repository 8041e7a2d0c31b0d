"""What the commands that run trials have in common."""

from __future__ import annotations

import argparse
import os
import re
import sys

from hotloop.cli import job as job_words

TYPE_CHECKING = False  # see main
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import TypeVar

    from hotloop.job import ScriptJob
    from hotloop.study import Study

    Work = Callable[[argparse.Namespace, list[int]], int]
    T = TypeVar("T")


def add_trial_arguments(parser: argparse.ArgumentParser) -> None:
    """How a trial is run, and what is shown and kept of it."""
    parser.add_argument(
        "--timeout",
        type=duration,
        default=600.0,
        metavar="TIME",
        help="give a run up after this long, such as 90s, 10m or 1h (default: 10m)",
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument(
        "--study", metavar="DIR", default=".hotloop", help="keep studies here (default: .hotloop)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing until the end")
    parser.add_argument(
        "-v",
        "--verbose",
        "--show-output",
        dest="show_output",
        action="store_true",
        help="let the script's output through (on stderr)",
    )


def obeyed(arguments: argparse.Namespace, work: Work) -> int:
    """`work`, with signals noted; with --json an error is printed on standard output too."""
    from hotloop.cli import signals
    from hotloop.errors import HotloopError

    # From the first import on: one that is broken off may leave a module that later crashes.
    with signals.noted() as received:
        try:
            return work(arguments, received)
        except HotloopError as error:
            if received:  # a Ctrl-C also reaches what we ask, and we then hear a wrong answer
                return interrupted(received)
            if arguments.json:
                told = {"code": error.exit_code, "sentence": error.sentence, "remedy": error.remedy}
                print_json({"error": told})
            raise


def until_stopped(received: list[int], work: Callable[[], Study]) -> Study | None:
    """None when the user asked to stop: whatever came of that is no error."""
    from hotloop.errors import HotloopError

    try:
        record = work()
    except (KeyboardInterrupt, HotloopError):
        if not received:
            raise
        return None
    return None if received else record


def reported(folder: Path, work: Callable[[], T]) -> T:
    """`work`; should it fail, what was seen until then has its report too, and that is said."""
    from hotloop.errors import HotloopError

    try:
        return work()
    except HotloopError as error:
        left = _report_of(folder)
        if left is not None:
            error.remedy = f"{error.remedy} The report: {short(left)}".strip()
        raise


def _report_of(folder: Path) -> Path | None:
    """None where there is nothing to report, or no room for it."""
    from hotloop import reporting, studies
    from hotloop.errors import HotloopError

    try:
        record = studies.read(folder / "study.json")
        return reporting.leave(record, folder)[0] if record.trials else None
    except HotloopError:
        return None


def interrupted(received: list[int], what_is_left: str = "") -> int:
    from hotloop.trial.terminal import harmless

    sys.stderr.write(f"hotloop: Interrupted.{harmless(what_is_left)}\n")
    return 128 + received[0]


def job_of(arguments: argparse.Namespace) -> ScriptJob:
    from hotloop import interpreter

    job = untried_job_of(arguments)
    interpreter.require_torch(job.python, job.cwd)
    return job


def untried_job_of(arguments: argparse.Namespace) -> ScriptJob:
    """Of which it is not known whether its interpreter has torch."""
    from hotloop import interpreter
    from hotloop.job import ScriptJob

    words, is_module, args = job_words.words_of(arguments)
    target, entry = job_words.split_entry(words, is_module)
    if not is_module:
        job_words.require_script(target)
    python = interpreter.find(arguments.python)
    return ScriptJob(target, is_module, args, python, os.getcwd(), entry)


def print_json(parts: dict[str, object]) -> None:
    from hotloop import codec

    sys.stdout.write(codec.encode({"version": 1, **parts}).decode() + "\n")


def command(job: ScriptJob) -> str:
    """The words that name the job and its Python, as a shell would read them."""
    import shlex

    from hotloop import interpreter

    is_usual = job.python == interpreter.find(None)
    return shlex.join([*([] if is_usual else ["--python", job.python]), *job.words])


def short(path: Path) -> str:
    try:
        return str(path.relative_to(os.getcwd()))
    except ValueError:
        return str(path)


def positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of steps")
    return int(text)


def times(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of times")
    return int(text)


_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0}


def duration(text: str) -> float:
    """Seconds, or a number of each unit: 90s, 10m, 1h30m."""
    parts = re.findall(r"([\d.e]+)([hms])", text)
    told = "".join(number + unit for number, unit in parts)
    try:
        seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
        seconds = seconds if told == text else float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; 90s, 10m and 1h30m are")
    return seconds
