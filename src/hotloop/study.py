"""The record of one piece of work on a job: everything a report needs, saved after every trial."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace
from pathlib import Path

from hotloop import __version__, codec
from hotloop.errors import StudyNotWritable
from hotloop.job import ScriptJob
from hotloop.machine import Machine
from hotloop.trial.trial import Trial

VERSION = 1
FOLDER = ".hotloop"


@dataclass(frozen=True)
class Study:
    command: str
    """"profile", for now."""
    job: ScriptJob
    job_digest: str
    machine: Machine
    created: str
    trials: tuple[Trial, ...] = ()
    hotloop: str = __version__
    version: int = VERSION

    def with_trial(self, trial: Trial) -> Study:
        return replace(self, trials=(*self.trials, trial))


def begin(command: str, job: ScriptJob, machine: Machine) -> Study:
    created = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    return Study(command, job, job.digest(), machine, created)


def new_folder(base: Path, job: ScriptJob) -> Path:
    """A folder of its own for a new study, under `.hotloop` unless told otherwise."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    try:
        base.mkdir(parents=True, exist_ok=True)
        ignore = base / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
        for attempt in range(1000):
            folder = base / f"{job.name}-{stamp}{f'-{attempt}' if attempt else ''}"
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                return folder
    except OSError as error:
        raise StudyNotWritable(
            f"No study can be kept in {base}: {error.strerror}.",
            "Free some space, or name another folder with --study.",
        ) from None
    raise StudyNotWritable(f"{base} is full of studies.", "Delete some of them.")


def save(study: Study, folder: Path) -> Path:
    path = folder / "study.json"
    codec.write(path, study)
    return path
