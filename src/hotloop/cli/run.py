"""`hotloop run`: the script, as python would run it, under a plan if there is one."""

from __future__ import annotations

import argparse
import os
import stat
import sys

from hotloop.cli import common
from hotloop.cli import job as job_words

TYPE_CHECKING = False  # see main
if TYPE_CHECKING:
    from hotloop.job import ScriptJob

USAGE = "hotloop run [options] (SCRIPT | -m MODULE) [ARGS…]"
DESCRIPTION = """\
Runs a training script as `python SCRIPT ARGS…` would: the same output, signals, working directory
and exit status. Without a plan nothing is patched, and hotloop's own process becomes the script's.

With a plan, its optimisations are applied from outside while the script runs. Each must show that
it took effect; if one does not, the run stops after its first steps and says so.

An exit status between 79 and 119 is hotloop's: the script was not started, or (96) its plan took no
effect. Should your script use such a number itself, --status FILE says whether it was started.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plan", metavar="FILE", help="apply the optimisations of a hotloop.json")
    parser.add_argument(
        "--keep-going", action="store_true", help="train on when an optimisation takes no effect"
    )
    parser.add_argument(
        "--anyway", action="store_true", help="accept a plan made for another script, torch or GPU"
    )
    parser.add_argument(
        "--status", metavar="FILE", help='write {"started": true} there once the script takes over'
    )
    job_words.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    _forget(arguments.status)
    job = common.untried_job_of(arguments)
    _become(job.argv(), _environment(arguments, job), arguments.status)
    return 0


def _environment(arguments: argparse.Namespace, job: ScriptJob) -> dict[str, str]:
    from hotloop.trial.environment import users_environment

    if arguments.plan is None:
        return users_environment()
    from pathlib import Path

    from hotloop import plan, planned

    chosen = plan.load(Path(arguments.plan))
    if chosen.is_empty:
        return users_environment()
    if not arguments.anyway:
        planned.require_fit(chosen, job)
    return planned.environment(chosen, arguments.keep_going)


def _become(words: list[str], environment: dict[str, str], status: str | None) -> None:
    """Replaces this process: signals, terminal and exit status need no relaying then."""
    from hotloop.errors import InterpreterNotFound

    _note(status)
    sys.stdout.flush()
    try:
        os.execve(words[0], words, environment)
    except OSError as error:
        _forget(status)
        raise InterpreterNotFound(
            f"{words[0]} cannot be started: {error.strerror}.",
            "Name the script's interpreter with --python.",
        ) from None


def _note(status: str | None) -> None:
    from hotloop.errors import StudyNotWritable

    if status is None:
        return
    try:
        with open(status, "w", encoding="utf-8") as file:
            file.write('{"started": true}\n')
    except OSError as error:
        raise StudyNotWritable(
            f"{status} cannot be written: {error.strerror}.", "Name another file."
        ) from None


def _forget(status: str | None) -> None:
    """What an earlier run left there says nothing of this one. Devices and links are left alone."""
    if status is not None and stat.S_ISREG(_mode(status)):
        try:
            os.unlink(status)
        except OSError:
            return


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0
