"""The measurement of a trial that must have one: otherwise what went wrong is raised."""

from __future__ import annotations

from pathlib import Path

from hotloop.errors import NothingMeasured
from hotloop.figures import Figures, figures
from hotloop.job import ScriptJob
from hotloop.measurement import Measurement
from hotloop.trial.failures import error_for
from hotloop.trial.terminal import harmless
from hotloop.trial.trial import Trial


def measured(trial: Trial, job: ScriptJob, folder: Path) -> tuple[Measurement, Figures]:
    """`folder`: the study's, where what the script printed is kept."""
    log = folder / trial.log
    printed = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    error = error_for(trial, job, harmless(printed))
    if error is not None:
        raise error
    found = figures(trial.measurement) if trial.measurement else None
    if trial.measurement is None or found is None:
        raise NothingMeasured("Too few steps were seen to speak of a speed.", "Train longer.")
    return trial.measurement, found
