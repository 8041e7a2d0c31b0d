"""The part of `hotloop profile` that says what limits the job: its options, its runs."""

from __future__ import annotations

import argparse

TYPE_CHECKING = False  # see main
if TYPE_CHECKING:
    from pathlib import Path

    from hotloop.cli.live import Live
    from hotloop.roof import Roof
    from hotloop.study import Study
    from hotloop.trial.order import Launcher, Watcher


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--no-look",
        action="store_true",
        help="only time it: no second run that looks for what limits it",
    )
    parser.add_argument(
        "--co2",
        type=_grams,
        metavar="GRAMS",
        help="CO₂ of a kWh of your electricity, for the estimate (default: the world's average)",
    )


def run(
    record: Study,
    arguments: argparse.Namespace,
    folder: Path,
    launcher: Launcher,
    watcher: Watcher,
    live: Live,
    received: list[int],
) -> Study:
    """The study with a second run, and what both show; as it is where that is not wanted."""
    from hotloop.diagnose.footprint import WORLD_AVERAGE
    from hotloop.profiling import diagnosed, look
    from hotloop.trial.trial import State

    if arguments.no_look or received or record.trials[0].state is not State.COMPLETE:
        return record
    live.say("looking into it")
    record = look(record, record.job, arguments.timeout, folder, launcher, watcher)
    if received:
        return record
    grams = WORLD_AVERAGE if arguments.co2 is None else arguments.co2
    return diagnosed(record, lambda: _roof(record.job.python, live, received), folder, grams)


def _roof(python: str, live: Live, received: list[int]) -> Roof | None:
    """What this machine can do, from the cache or measured now."""
    from hotloop import roofs
    from hotloop.cli import signals

    try:
        return roofs.of(
            python,
            watch=lambda: signals.heed(received),
            begins=lambda: live.say("measuring the machine"),
        )
    except KeyboardInterrupt:
        return None


def _grams(text: str) -> float:
    try:
        grams = float(text)
    except ValueError:
        grams = -1.0
    if not 0 <= grams < 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of grams")
    return grams
