"""`hotloop levers`: the optimisations hotloop knows."""

from __future__ import annotations

import argparse
import sys

USAGE = "hotloop levers [NAME]"
DESCRIPTION = """\
Lists the optimisations that a plan may hold, or explains one of them: what it does to the training,
its settings, and what it goes with.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="explain this one")


def run(arguments: argparse.Namespace) -> int:
    from hotloop.errors import UsageError
    from hotloop.levers.registry import LEVERS
    from hotloop.report.lever_rows import card, table

    if arguments.name is None:
        lines = table(list(LEVERS.values()), _room())
    elif arguments.name in LEVERS:
        lines = card(LEVERS[arguments.name])
    else:
        raise UsageError(
            f"There is no optimisation {arguments.name}.", "`hotloop levers` lists them."
        )
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _room() -> int | None:
    """Columns of the terminal. None where it is none."""
    import shutil

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
