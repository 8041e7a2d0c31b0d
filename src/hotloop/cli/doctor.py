"""`hotloop doctor`: the machine, what it can do, and what spoils measurements on it."""

from __future__ import annotations

import argparse
import os
import sys

from hotloop.cli import common

TYPE_CHECKING = False  # see main
if TYPE_CHECKING:
    from hotloop.doctor.examination import Examination

USAGE = "hotloop doctor [options] [PATH…]"
DESCRIPTION = """\
Shows the machine, the most it can do (measured once, in some seconds, and kept in your cache), and
the state that makes jobs slow or measurements uncertain: clocks, heat, other work, limits of
containers, too little shared memory, a driver too old, a slow disk. Each warning comes with its
remedy. What cannot be read is shown as unknown. Ends with 0 also when there are warnings.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")
    parser.add_argument(
        "--python", metavar="PATH", help="the job's interpreter (default: the active one)"
    )
    parser.add_argument(
        "--remeasure", action="store_true", help="measure again what the machine can do"
    )
    parser.add_argument(
        "paths",
        nargs="*",
        default=["."],
        metavar="PATH",
        help="folders of datasets, whose disks are checked (default: the current folder)",
    )


def run(arguments: argparse.Namespace) -> int:
    return common.obeyed(arguments, _doctor)


def _doctor(arguments: argparse.Namespace, received: list[int]) -> int:
    from hotloop import interpreter
    from hotloop.cli import signals
    from hotloop.doctor.examination import examine

    _require_all(arguments.paths)
    python = interpreter.find(arguments.python)

    try:
        found = examine(
            python,
            tuple(arguments.paths),
            remeasure=arguments.remeasure,
            watch=lambda: signals.heed(received),
            begins=_say,
        )
        signals.heed(received)
    except KeyboardInterrupt:
        return common.interrupted(received)
    _show(found, arguments.json)
    return 0


def _require_all(paths: list[str]) -> None:
    from hotloop.errors import UsageError

    for path in paths:
        if not os.path.exists(path):
            raise UsageError(f"There is no folder {path}.", "Name folders of datasets, or none.")


def _say() -> None:
    sys.stderr.write("hotloop: measuring what this machine can do, which takes some seconds.\n")


def _show(found: Examination, as_json: bool) -> None:
    if as_json:
        parts: dict[str, object] = {
            "machine": found.machine,
            "roof": found.roof,
            "datasheet": found.datasheet,
            "state": found.state,
            "checks": found.checks,
        }
        common.print_json(parts)
        return
    from rich.console import Console

    from hotloop.report.doctor_console import show_doctor
    from hotloop.report.doctor_rows import rows

    show_doctor(Console(), rows(found))
