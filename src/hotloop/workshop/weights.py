"""Trials that begin from what others have saved: the weights of a reference, the state of a soak.

Another run of the reference may come to other weights, if only by the order of a sum, and beside
them the evidence says nothing. So each run of it has a name of its own, that of the folder where
its weights lie, and what was compared with them carries that name.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from hotloop.trial.order import Launcher, Order, Watcher
from hotloop.trial.spec import Exam, Soak
from hotloop.trial.trial import Trial

NAME = "reference"
MOST_KEPT = 10**9
"""Bytes that are left in a study for a search that may go on, and may not."""


class WeightsGone(Exception):
    """A trial has to be run that begins from weights which are no longer kept."""


def needed(exam: Exam | None) -> str | None:
    """The name of the weights that such a trial begins from. None: it begins from its own."""
    if exam is None or exam.is_reference or not exam.forced:
        return None
    return Path(exam.folder).name


def shared(exam: Exam | None, soak: Soak | None) -> str | None:
    """What an earlier trial must be tied to, if it is to stand for this one. None: to anything."""
    if soak is not None:  # the plain job saves a state for one plan, and takes back that of one
        return f"{Path(soak.load).name}>{Path(soak.save).name}"
    return needed(exam)


def are_gone(exam: Exam | None) -> bool:
    return exam is not None and needed(exam) is not None and not Path(exam.folder).is_dir()


def new_name(trials: Iterable[Trial]) -> str:
    """One that none of these trials has: not of a run either whose weights are gone."""
    known = {trial.tied_to for trial in trials}
    number = 1
    while f"{NAME}-{number}" in known:
        number += 1
    return f"{NAME}-{number}"


def size(study: Path) -> int:
    files = (file for folder in study.glob(f"{NAME}*") for file in folder.rglob("*"))
    return sum(file.stat().st_size for file in files)


def clear(study: Path) -> None:
    """They are large. Also those of a reference that was killed."""
    for folder in study.glob(f"{NAME}*"):
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Tying:
    """A launcher whose trials say what they are tied to."""

    launcher: Launcher

    def launch(self, order: Order, watcher: Watcher) -> Trial:
        trial = self.launcher.launch(order, watcher)
        exam = order.exam
        saved = Path(exam.folder).name if exam is not None and exam.is_reference else None
        return replace(trial, tied_to=saved or shared(exam, order.soak) or "")
