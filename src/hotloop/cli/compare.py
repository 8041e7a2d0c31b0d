"""`hotloop compare`: did a change make the job slower? For people, and for CI to gate on."""

from __future__ import annotations

import argparse

from hotloop.cli import common

TYPE_CHECKING = False  # see main
if TYPE_CHECKING:
    from hotloop.comparing import Compared

USAGE = "hotloop compare [options] BEFORE AFTER"
DESCRIPTION = """\
Compares the time of a step in two studies of one job, made before and after a change on the same
machine with the same versions: slower, faster, the same, or cannot tell, with an interval.

Processes differ from each other by more than steps do, so an interval needs several on at least
one side: make studies with `hotloop profile --repeat 5`, or name more studies of either side with
--before and --after. Of a search the runs of the job as it is are compared.

Exits with 1 when the job is slower by more than the threshold, with 102 when the studies cannot be
compared, and with 0 otherwise; with --strict also with 1 when such a slow-down cannot be excluded.
"""
SLOWER = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("first", metavar="BEFORE", help="a folder under .hotloop, or a study.json")
    add("second", metavar="AFTER", help="the same, made after the change")
    add(
        "--threshold",
        type=_share,
        default=0.05,
        metavar="P%",
        help="how much slower is too much (default: 5%%)",
    )
    add(
        "--strict",
        action="store_true",
        help="exit with 1 also when a slow-down beyond the threshold cannot be excluded",
    )
    add("--anyway", action="store_true", help="compare across machines, versions and jobs")
    add(
        "--before",
        action="append",
        default=[],
        metavar="STUDY",
        help="one more study from before the change; may be repeated",
    )
    add(
        "--after",
        action="append",
        default=[],
        metavar="STUDY",
        help="one more study from after it; may be repeated",
    )
    add("--json", action="store_true", help="print the figures as JSON")
    add(
        "--study",
        metavar="DIR",
        default=".hotloop",
        help="where studies are kept (default: .hotloop)",
    )


def run(arguments: argparse.Namespace) -> int:
    return common.obeyed(arguments, _compare)


def _compare(arguments: argparse.Namespace, received: list[int]) -> int:
    from pathlib import Path

    from hotloop import studies
    from hotloop.comparing import compare

    base = Path(arguments.study)
    sides = ([arguments.first, *arguments.before], [arguments.second, *arguments.after])
    before, after = ([studies.skim(studies.find(name, base)) for name in side] for side in sides)
    found = compare(before, after, arguments.threshold, arguments.anyway)
    _show(found, before[0].job.shown, arguments.json)
    failed = found.beyond or (arguments.strict and found.may_be_beyond)
    return SLOWER if failed else 0


def _show(found: Compared, name: str, as_json: bool) -> None:
    from rich.console import Console

    from hotloop.report.compare_rows import rows
    from hotloop.report.search_console import show_verdict

    if as_json:
        common.print_json({"beyond": found.beyond, "compared": found})
        return
    told = rows(found)
    show_verdict(Console(), name, not found.beyond, told.headline, list(told.facts))


def _share(text: str) -> float:
    number = text.removesuffix("%")
    try:
        share = float(number) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    # A bare 5 is surely meant as 5%, and 500% would let anything pass.
    if not 0 <= share < 10 or (share >= 1 and not text.endswith("%")):
        raise argparse.ArgumentTypeError(f"{text!r} is no threshold; 5% and 0.05 are")
    return share
