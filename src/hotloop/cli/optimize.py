"""`hotloop optimize`: an unmodified script in, a plan that is proven faster out, or a refusal."""

from __future__ import annotations

import argparse

from hotloop.cli import common, resume
from hotloop.cli import job as job_words

TYPE_CHECKING = False  # see main
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hotloop.job import ScriptJob
    from hotloop.measurement import Measurement
    from hotloop.roof import Roof
    from hotloop.study import Options, Study
    from hotloop.workshop.watching import Outlook

USAGE = "hotloop optimize [options] (SCRIPT | -m MODULE) [ARGS…]"
DESCRIPTION = """\
Runs a training script many times for a short while, unmodified, each time in a process of its own;
tries the optimisations that could help by what was measured; keeps those that are proven faster and
shown to leave the training alone; and writes them down as a plan, which `hotloop run` applies.
What the script saves, renames or deletes meanwhile happens in scratch space.

Exits with 0 also when nothing is to be won: that is a result.
"""
OBJECTIVES = ("speed", "memory")
EFFECTS = ("same_math", "lower_precision", "changes_training")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_bounds(parser)
    add = parser.add_argument
    add(
        "--resume",
        nargs="?",
        const="",
        metavar="STUDY",
        help="go on with a search that was stopped: STUDY, or the newest of this job",
    )
    add(
        "--dry-run",
        action="store_true",
        help="measure the script, find what limits it, say what would be tried, and stop",
    )
    add(
        "--plan-out",
        metavar="FILE",
        default="hotloop.json",
        help="write the plan here (default: hotloop.json)",
    )
    add(
        "--no-look",
        action="store_true",
        help="leave out the run that looks for what limits the job: it decides what is tried first",
    )
    add(
        "--thorough",
        action="store_true",
        help="of optimisations that have helped, try also settings whose runs take minutes",
    )
    common.add_trial_arguments(parser)
    job_words.add_arguments(parser)


def _add_bounds(parser: argparse.ArgumentParser) -> None:
    """How far the search may go."""
    add = parser.add_argument
    add(
        "--budget",
        type=common.duration,
        metavar="TIME",
        help="the time that the search may take, such as 10m (default: what it needs)",
    )
    add(
        "--steps",
        type=common.positive,
        metavar="N",
        help="measure N steps a run (default: enough)",
    )
    add(
        "--only",
        metavar="NAMES",
        default="",
        help="try these optimisations, and what they need, separated by commas; "
        "`hotloop levers` lists them",
    )
    add(
        "--skip",
        metavar="NAMES",
        default="",
        help="do not try these optimisations, separated by commas",
    )
    add(
        "--effect",
        choices=EFFECTS,
        default="lower_precision",
        help="the most that may happen to the training: nothing but other roundings, another "
        "number format, or another batch or sequence (default: lower_precision)",
    )
    add(
        "--objective",
        choices=OBJECTIVES,
        default="speed",
        help="what to look for: the fastest plan, or the one that needs the least memory; for a "
        "job that runs out of memory, a plan with which it runs (default: speed)",
    )


def run(arguments: argparse.Namespace) -> int:
    return common.obeyed(arguments, _optimize)


def _optimize(arguments: argparse.Namespace, received: list[int]) -> int:
    from pathlib import Path

    from hotloop import lock, study

    options = _options(arguments)
    job = common.job_of(arguments)
    if received:
        return common.interrupted(received)
    resumed = resume.folder_of(arguments.resume)
    base = resumed.parent if resumed else Path(arguments.study).absolute()
    with lock.held(base):
        if arguments.resume is None:
            return _search(arguments, received, job, options, study.new_folder(base, job), None)
        folder = resumed or study.latest(base, job)
        earlier = study.load(folder / "study.json")
        return _search(arguments, received, job, options, folder, earlier)


def _search(
    arguments: argparse.Namespace,
    received: list[int],
    job: ScriptJob,
    options: Options,
    folder: Path,
    earlier: Study | None,
) -> int:
    from hotloop.cli.live_search import LiveSearch
    from hotloop.optimization import optimize
    from hotloop.trial.launch import ProcessLauncher

    limit, dry = arguments.timeout, arguments.dry_run
    launcher = ProcessLauncher()
    quiet, output = arguments.quiet, arguments.show_output
    with LiveSearch(job.shown, options, received, quiet, output, says_outlook=not dry) as live:
        roof = roof_of(job, received)

        def search() -> Study:
            return optimize(job, options, limit, folder, launcher, live, dry, earlier, roof)

        record = common.until_stopped(received, lambda: common.reported(folder, search))
    if record is None:
        if not (folder / "study.json").exists():  # it is written after each run
            return common.interrupted(received, " No run was finished: there is nothing to keep.")
        again = resume.command(arguments, job, folder)
        left = f" What was found so far is in {common.short(folder)}. To go on: {again}"
        return common.interrupted(received, left)
    if dry:
        return _show_outlook(arguments, job, folder, record, live.outlook)
    return _show(arguments, job, folder, record)


def roof_of(job: ScriptJob, received: list[int]) -> Callable[[Measurement], Roof | None]:
    """Measured where the job runs on a GPU; otherwise only if that was done before.

    On a CPU it takes as long as a trial and says little that a search could use.
    """
    from hotloop import roofs
    from hotloop.cli import signals
    from hotloop.roof_process import Measured

    def roof(measurement: Measurement) -> Roof | None:
        if measurement.software.device != "cpu":
            return roofs.of(job.python, watch=lambda: signals.heed(received))
        return roofs.of(job.python, measure=lambda python, watch: Measured())

    return roof


def _options(arguments: argparse.Namespace) -> Options:
    from hotloop.study import Options

    return Options(
        objective=arguments.objective,
        effect=arguments.effect,
        only=names(arguments.only, "--only"),
        skip=names(arguments.skip, "--skip"),
        steps=arguments.steps,
        budget=arguments.budget,
        look=not arguments.no_look,
        thorough=arguments.thorough,
    )


def names(text: str, option: str) -> tuple[str, ...]:
    from hotloop.errors import UsageError
    from hotloop.levers.registry import LEVERS

    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in LEVERS:
            raise UsageError(
                f"There is no optimisation {name} to give to {option}.",
                f"Known are: {', '.join(LEVERS)}.",
            )
    return names


def _show_outlook(
    arguments: argparse.Namespace,
    job: ScriptJob,
    folder: Path,
    record: Study,
    outlook: Outlook | None,
) -> int:
    from rich.console import Console

    from hotloop.errors import HotloopFailed
    from hotloop.report.outlook_rows import outlook_rows
    from hotloop.report.search_console import show_outlook

    if outlook is None:
        raise HotloopFailed("The search did not say what it would do.", "Please report it.")
    again = resume.command(arguments, job, folder)
    if arguments.json:
        found = record.found
        candidates, refused = (found.candidates, found.refused) if found else ((), ())
        limit = record.diagnosis.verdict if record.diagnosis else None
        told = {"limited_by": limit, "candidates": candidates, "refused": refused}
        where = {"study": str(folder / "study.json"), "next": again}
        common.print_json({"outlook": outlook, **told, **where})
        return 0
    rows = outlook_rows(record, outlook)
    show_outlook(Console(), job.shown, rows, [("to go on", again)])
    return 0


def _show(arguments: argparse.Namespace, job: ScriptJob, folder: Path, record: Study) -> int:
    from pathlib import Path

    from hotloop.cli import search_end

    end = search_end.write(record, job, folder, Path(arguments.plan_out))
    if arguments.json:
        common.print_json(search_end.summary(record, end))
    else:
        longer = resume.with_more_time(arguments, job, folder, record)
        search_end.show(record, job, end, longer)
    return 0
