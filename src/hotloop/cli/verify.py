"""`hotloop verify`: does a plan do the same training? Looks longer than a search does."""

from __future__ import annotations

import argparse

from hotloop.cli import common
from hotloop.cli import job as job_words

TYPE_CHECKING = False  # see main
if TYPE_CHECKING:
    from pathlib import Path

    from hotloop.job import ScriptJob
    from hotloop.plan import Plan
    from hotloop.study import Study

USAGE = "hotloop verify --plan FILE [options] (SCRIPT | -m MODULE) [ARGS…]"
DESCRIPTION = """\
Runs a training script as it is and under a plan, over the same batches from the same weights, and
compares the two: what the model was given, every step and its settings, and the arithmetic. What
the script saves, renames or deletes meanwhile happens in scratch space.

Exits with 0 when the training is indistinguishable over the steps that were looked at, and with 1
when it is not, or when that could not be shown.
"""
NOT_THE_SAME = 1
STEPS = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plan", metavar="FILE", required=True, help="the hotloop.json to check")
    parser.add_argument(
        "--steps",
        type=common.positive,
        default=STEPS,
        metavar="N",
        help=f"compare N steps (default: {STEPS})",
    )
    common.add_trial_arguments(parser)
    job_words.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    return common.obeyed(arguments, _verify)


def _verify(arguments: argparse.Namespace, received: list[int]) -> int:
    from pathlib import Path

    from hotloop import lock, plan, study

    chosen = plan.load(Path(arguments.plan))
    job = common.job_of(arguments)
    if received:
        return common.interrupted(received)
    base = Path(arguments.study).absolute()
    with lock.held(base):
        folder = study.new_folder(base, job)
        record = _compare(arguments, received, job, chosen, folder)
    if record is None:
        return common.interrupted(received, f" What was seen so far is in {common.short(folder)}.")
    return _show(arguments, job, folder, record)


def _compare(
    arguments: argparse.Namespace, received: list[int], job: ScriptJob, chosen: Plan, folder: Path
) -> Study | None:
    """None when the user has stopped it."""
    from hotloop.cli.live_search import LiveSearch
    from hotloop.study import Options
    from hotloop.trial.launch import ProcessLauncher
    from hotloop.verify import verify

    steps, limit, launcher = arguments.steps, arguments.timeout, ProcessLauncher()
    options = Options(steps=steps)
    with LiveSearch(job.shown, options, received, arguments.quiet, arguments.show_output) as live:
        return common.until_stopped(
            received, lambda: verify(job, chosen, steps, limit, folder, launcher, live)
        )


def _show(arguments: argparse.Namespace, job: ScriptJob, folder: Path, record: Study) -> int:
    from rich.console import Console

    from hotloop.report import equivalence_rows
    from hotloop.report.search_console import show_verdict

    found = record.found.equivalence if record.found else None
    same = found is not None and found.same
    path = folder / "study.json"
    if arguments.json:
        common.print_json({"same": same, "equivalence": found, "study": str(path)})
    else:
        facts = [] if found is None else equivalence_rows.facts(found)
        headline = equivalence_rows.verdict(found)
        left = ("study", common.short(path))
        show_verdict(Console(), job.shown, same, headline, [*facts, left])
    return 0 if same else NOT_THE_SAME
