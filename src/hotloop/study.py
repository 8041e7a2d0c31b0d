"""The record of one piece of work on a job: everything a report needs, saved after every trial."""

from __future__ import annotations

import contextlib
import glob
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from hotloop import codec
from hotloop.diagnose.diagnosis import Diagnosis
from hotloop.equivalence.judge import Equivalence
from hotloop.errors import StudyMismatch, StudyNotWritable
from hotloop.job import ScriptJob
from hotloop.machine import Machine
from hotloop.plan import Plan
from hotloop.roof import Roof
from hotloop.search.batch_sizes import Curve
from hotloop.search.candidate import Candidate
from hotloop.search.climb import Climb
from hotloop.search.proof import Proof
from hotloop.search.rescue import Rescue
from hotloop.trial.trial import Trial
from hotloop.version import VERSION as HOTLOOP

VERSION = 1
FOLDER = ".hotloop"


@dataclass(frozen=True)
class Options:
    """How far a search may go, as the user said."""

    objective: str = "speed"
    """Or "memory"."""
    effect: str = "lower_precision"
    """The most that an optimisation may do to the training."""
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    steps: int | None = None
    """Measured steps a trial."""
    budget: float | None = None
    """Seconds that all trials together may take."""
    look: bool = False
    """Look into the job first, and try what its diagnosis speaks for before the rest."""
    thorough: bool = False
    """Also settings whose trials take minutes, of what has helped."""


NO_TIME = "no time was left for a trial and its proof"
"""Why an optimisation is refused that nothing else speaks against."""


def too_small(share: float) -> str:
    """Why one is not tried that could win so little."""
    return f"it could win {share:.1%} of a step at the very most"


@dataclass(frozen=True)
class Refused:
    """An optimisation that is not in the plan."""

    lever: str
    reason: str
    tried: bool
    cost: float = 0.0
    """Seconds its trials took."""
    log: str = ""
    """What the trial printed that failed with it: a file, relative to the study."""


@dataclass(frozen=True)
class Soaked:
    """What the plan was seen to survive, and what could not be reached."""

    passed: bool
    reason: str
    """Why not; empty when passed."""
    met: tuple[str, ...] = ()
    """"the last short batch", "a second epoch", …"""
    not_met: tuple[str, ...] = ()


@dataclass(frozen=True)
class Found:
    """What a search came to."""

    options: Options
    candidates: tuple[Candidate, ...] = ()
    refused: tuple[Refused, ...] = ()
    rescue: Rescue | None = None
    """Of a job that runs out of memory as it is."""
    climb: Climb | None = None
    sizes: Curve | None = None
    """Batch sizes that were run, where the user allows another."""
    proof: Proof | None = None
    equivalence: Equivalence | None = None
    soaked: Soaked | None = None
    plan: Plan | None = None
    """The plan that is handed out; None when nothing was proven, or not yet."""
    verdict: str = ""
    """One sentence. Empty while the search goes on."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unused:
    """Trials that a search does not rest on: they were run again, or are not asked for any more."""

    runs: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Study:
    command: str
    """"profile", "optimize" or "verify"."""
    job: ScriptJob
    job_digest: str
    machine: Machine
    created: str
    trials: tuple[Trial, ...] = ()
    found: Found | None = None
    """Of a search."""
    roof: Roof | None = None
    """What the machine can do at most, where it was measured."""
    diagnosis: Diagnosis | None = None
    """What limits the job as it is."""
    unused: Unused = field(default_factory=Unused)
    hotloop: str = HOTLOOP
    version: int = VERSION

    def with_trial(self, trial: Trial) -> Study:
        return replace(self, trials=(*self.trials, trial))

    def without_use(self, runs: int, seconds: float) -> Study:
        unused = Unused(self.unused.runs + runs, self.unused.seconds + seconds)
        return replace(self, unused=unused)


def begin(
    command: str,
    job: ScriptJob,
    machine: Machine,
    found: Found | None = None,
    earlier: Study | None = None,
) -> Study:
    """`earlier`: with which it goes on. Its trials are taken over as they are asked for."""
    created = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    unused = earlier.unused if earlier is not None else Unused()
    return Study(command, job, job.digest(), machine, created, found=found, unused=unused)


def make_base(base: Path) -> None:
    """The folder of all studies, which is nobody's source."""
    base.mkdir(parents=True, exist_ok=True)
    ignore = base / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")


def new_folder(base: Path, job: ScriptJob) -> Path:
    """A folder of its own for a new study, under `.hotloop` unless told otherwise."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    try:
        make_base(base)
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


def load(path: Path) -> Study:
    try:
        return codec.decode(path.read_bytes(), Study)
    except (OSError, ValueError) as error:
        raise StudyMismatch(
            f"{path} is not a study that this hotloop can read: {error}.",
            "Begin anew, without --resume.",
        ) from None


def latest(base: Path, job: ScriptJob) -> Path:
    """The folder of the newest search of this job."""
    studies = base.glob(f"{glob.escape(job.name)}-*/study.json")
    newest = sorted(studies, key=lambda path: path.stat().st_mtime)
    for path in reversed(newest):
        with contextlib.suppress(StudyMismatch):
            record = load(path)
            if record.command == "optimize" and record.job_digest == job.digest():
                return path.parent
    raise StudyMismatch(
        f"There is no search of this job in {base} to go on with.", "Begin one, without --resume."
    )


def save(study: Study, folder: Path) -> Path:
    path = folder / "study.json"
    codec.write(path, study, indent=-1)  # a number a line would make it twice as large
    return path
