"""`hotloop experiment`: one of the well-known comparisons, on this machine."""

from __future__ import annotations

import argparse
import sys

from hotloop.cli import common

TYPE_CHECKING = False  # see main
if TYPE_CHECKING:
    from pathlib import Path

    from hotloop.experiments.base import Outcome
    from hotloop.experiments.lab import Lab
    from hotloop.job import ScriptJob

USAGE = "hotloop experiment NAME [options]"
DESCRIPTION = """\
Runs a well-known comparison on this machine, with jobs that hotloop brings along: each case several
times, in fresh processes, in turn. Prints a table, draws a figure and writes JSON. On a CPU jobs
are scaled down. --list explains them all; docs/lab.md walks through them.
"""
PRECISIONS = ("float32", "bfloat16", "float16")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("name", nargs="?", metavar="NAME", help="which one; --list names them")
    add("--list", action="store_true", help="list the experiments there are")
    add("--batch-size", type=common.positive, metavar="N", help="another batch size than its own")
    add(
        "--precision",
        choices=PRECISIONS,
        help="only this number format, where the experiment has several",
    )
    add("--out", metavar="DIR", default="lab", help="results/ and figures/ go there (default: lab)")
    add(
        "--runs", type=common.positive, default=3, metavar="N", help="processes a case (default: 3)"
    )
    add("--steps", type=common.positive, metavar="N", help="steps a process (default: enough)")
    add(
        "--exhaustive",
        action="store_true",
        help="best: run all other settings too, to see how near its choice is",
    )
    add(
        "--device",
        choices=("cpu", "cuda"),
        help="where to compute (default: a GPU where there is one)",
    )
    add(
        "--timeout",
        type=common.duration,
        default=600.0,
        metavar="TIME",
        help="give a process up after this long (default: 10m)",
    )
    add("--python", metavar="PATH", help="the interpreter that has torch (default: the active one)")
    add("--json", action="store_true", help="print what came of it as JSON")


def run(arguments: argparse.Namespace) -> int:
    if arguments.list:
        return _list()
    return common.obeyed(arguments, _experiment)


def _list() -> int:
    from hotloop.experiments.registry import EXPERIMENTS

    width = max(map(len, EXPERIMENTS))
    lines = [f"  {name:<{width}}  {one.summary}" for name, one in EXPERIMENTS.items()]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _experiment(arguments: argparse.Namespace, received: list[int]) -> int:
    from pathlib import Path

    from hotloop.cli import signals
    from hotloop.errors import UsageError
    from hotloop.experiments.keeping import keep
    from hotloop.experiments.registry import EXPERIMENTS

    if arguments.name not in EXPERIMENTS:
        what = f"There is no experiment {arguments.name}." if arguments.name else "Which one?"
        raise UsageError(what, f"There are: {', '.join(EXPERIMENTS)}.")
    if arguments.exhaustive and not EXPERIMENTS[arguments.name].searches:
        which = [name for name, one in EXPERIMENTS.items() if one.searches]
        raise UsageError(
            f"{arguments.name} runs all of its cases anyway.",
            f"--exhaustive is for {', '.join(which)}.",
        )
    out = Path(arguments.out).absolute()
    lab = _lab(arguments, received, out)
    try:
        outcome = EXPERIMENTS[arguments.name]().run(lab)
        signals.heed(received)
    except KeyboardInterrupt:
        lab.discard()
        if not received:
            raise
        return common.interrupted(received)
    finally:
        lab.close()
    return _show(arguments, outcome, *keep(outcome, out))


def _lab(arguments: argparse.Namespace, received: list[int], out: Path) -> Lab:
    import os

    from hotloop import installed, interpreter, machine, roofs
    from hotloop.cli import signals
    from hotloop.experiments.lab import Asked, Lab
    from hotloop.trial.launch import ProcessLauncher

    python = interpreter.find(arguments.python)
    interpreter.require_torch(python, os.getcwd())
    build, gpus = installed.look(python), machine.describe().gpus
    usual = "cuda" if gpus and (build.cuda or build.hip) else "cpu"
    device = arguments.device or usual
    where = f"{gpus[0].name if device == 'cuda' and gpus else 'CPU'}, torch {build.torch}"
    asked = Asked(
        arguments.batch_size,
        arguments.precision,
        arguments.runs,
        arguments.steps,
        arguments.timeout,
        arguments.exhaustive,
    )
    job = _name(arguments.name, python)
    return Lab(
        python,
        device,
        where,
        asked,
        _folder(out, job),
        ProcessLauncher(),
        signals.heeded(received, lambda glimpse: None),
        lambda: roofs.of(python, watch=lambda: signals.heed(received)),
        _say,
        lambda: signals.heed(received),
    )


def _folder(out: Path, job: ScriptJob) -> Path:
    from hotloop.errors import StudyNotWritable
    from hotloop.study import new_folder

    try:
        return new_folder(out / "trials", job)
    except StudyNotWritable as error:
        raise StudyNotWritable(error.sentence, "Name another folder with --out.") from None


def _name(name: str, python: str) -> ScriptJob:
    """Stands for the experiment where a folder is named after a job."""
    from hotloop.job import ScriptJob

    return ScriptJob(f"{name}.py", False, (), python, ".")


def _say(text: str) -> None:
    sys.stderr.write(f"hotloop: {text} …\n")


def _show(arguments: argparse.Namespace, outcome: Outcome, results: Path, picture: Path) -> int:
    from rich.console import Console

    from hotloop.report.experiment_console import show_experiment

    if arguments.json:
        common.print_json({"experiment": outcome, "results": str(results), "figure": str(picture)})
        return 0
    left = [("results", common.short(results)), ("figure", common.short(picture))]
    show_experiment(
        Console(),
        outcome.title,
        outcome.where,
        outcome.head,
        outcome.rows,
        outcome.notes,
        left,
    )
    return 0
