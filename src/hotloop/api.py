"""`hotloop.optimize` and `hotloop.profile`: the commands, called from Python or from a notebook.

    found = hotloop.optimize("jobs.py:MyJob", budget=600)
    hotloop.train(MyJob, plan=found.plan)

Trials run in fresh processes here too: a job is named by its file, or given as an importable class.
"""

from __future__ import annotations

import argparse
import inspect
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hotloop import interpreter, lock, plan, profiling, study
from hotloop.cli import job as job_words
from hotloop.cli import search_end
from hotloop.cli.common import duration
from hotloop.cli.live_search import LiveSearch
from hotloop.cli.optimize import EFFECTS, OBJECTIVES, names, roof_of
from hotloop.errors import JobInvalid, UsageError
from hotloop.job import ScriptJob
from hotloop.optimization import optimize as search
from hotloop.plan import Plan
from hotloop.shown import Shown
from hotloop.study import Options
from hotloop.training_job import TrainingJob
from hotloop.trial.launch import ProcessLauncher
from hotloop.trial.spec import StopRule
from hotloop.workshop.measured import measured

Job = str | type[TrainingJob]


def optimize(
    job: Job,
    *args: str,
    budget: float | str | None = None,
    effect: str = "lower_precision",
    objective: str = "speed",
    only: str | Sequence[str] = (),
    skip: str | Sequence[str] = (),
    steps: int | None = None,
    thorough: bool = False,
    plan_out: str | Path = "hotloop.json",
    study_folder: str | Path = study.FOLDER,
    timeout: float = 600.0,
    python: str | None = None,
    quiet: bool = False,
    **settings: Any,
) -> Shown:
    """Finds what makes a job faster, proves it, and writes a plan.

    `job`: "jobs.py:MyJob", a class that can be imported, or a script with its arguments in `args`.
    `settings`: attributes of the class, set before each run. `budget`: seconds, or "10m". All else
    as `hotloop optimize` has it.
    """
    options = Options(
        objective=_one_of("objective", objective, OBJECTIVES),
        effect=_one_of("effect", effect, EFFECTS),
        only=_names(only, "only"),
        skip=_names(skip, "skip"),
        steps=steps,
        budget=_seconds(budget),
        look=True,
        thorough=thorough,
    )
    named = job_of(job, args, settings, python)
    base = Path(study_folder).absolute()
    with lock.held(base):
        folder = study.new_folder(base, named)
        with LiveSearch(named.shown, options, [], quiet) as live:
            roof = roof_of(named, [])
            launcher = ProcessLauncher()
            record = search(named, options, timeout, folder, launcher, live, roof=roof)
    end = search_end.write(record, named, folder, Path(plan_out))
    return Shown(record, folder, end.plan)


def profile(
    job: Job,
    *args: str,
    plan_file: str | Path | None = None,
    steps: int | None = None,
    study_folder: str | Path = study.FOLDER,
    timeout: float = 600.0,
    python: str | None = None,
    look: bool = True,
    **settings: Any,
) -> Shown:
    """How fast a job is, where each step's time goes and what limits it.

    `look`: a second run looks for what limits it. All else as `hotloop.optimize` has it.
    """
    named = job_of(job, args, settings, python)
    chosen = plan.load(Path(plan_file)) if plan_file else Plan()
    folder = study.new_folder(Path(study_folder).absolute(), named)
    launcher = ProcessLauncher()
    stop = StopRule(steps=steps)
    record = profiling.profile(named, chosen, stop, timeout, folder, launcher, _unwatched)
    measured(record.trials[0], named, folder)  # raises what went wrong, if anything did
    if look:
        record = profiling.look(record, named, timeout, folder, launcher, _unwatched)
        baseline = record.trials[0].measurement
        assert baseline is not None
        record = profiling.diagnosed(record, lambda: roof_of(named, [])(baseline), folder)
    return Shown(record, folder)


def job_of(
    job: Job, args: Sequence[str], settings: dict[str, Any], python: str | None
) -> ScriptJob:
    target, is_module, entry = _named(job)
    if not is_module:
        job_words.require_script(target)
    # The caller's own interpreter: what the job needs is there, or the caller would know.
    chosen = interpreter.find(python) if python else sys.executable
    cwd = os.getcwd()
    interpreter.require_torch(chosen, cwd)
    words = (*args, *(f"{name}={value}" for name, value in settings.items()))
    return ScriptJob(target, is_module, words, chosen, cwd, entry)


def _named(job: Job) -> tuple[str, bool, str]:
    if isinstance(job, str):
        target, entry = job_words.split_entry(job, is_module=False)
        return target, False, entry
    if not (isinstance(job, type) and issubclass(job, TrainingJob)):
        raise JobInvalid(
            f'A job is "jobs.py:MyJob" or a class of hotloop.TrainingJob, not {job!r}.',
            "Settings of the class are given by name: hotloop.optimize(MyJob, hidden=256).",
        )
    outer = job.__qualname__.rpartition(".")[0]
    if job.__module__ == "__main__" or outer:
        where = f"inside {outer}" if outer else "in this notebook or program itself"
        raise JobInvalid(
            f"{job.__name__} is defined {where}, where a fresh process cannot find it.",
            "Write it to a file, in a notebook with %%writefile jobs.py, and give "
            f'"jobs.py:{job.__name__}".',
        )
    if "." in job.__module__:
        return job.__module__, True, job.__name__
    return inspect.getfile(job), False, job.__name__


def _one_of(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise UsageError(f"There is no {name} {value!r}.", f"It is one of {', '.join(known)}.")
    return value


def _names(given: str | Sequence[str], name: str) -> tuple[str, ...]:
    return names(given if isinstance(given, str) else ",".join(given), name)


def _seconds(budget: float | str | None) -> float | None:
    if budget is None or isinstance(budget, int | float):
        return budget
    try:
        return duration(budget)
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"The budget is no time: {error}.", 'Give seconds, or "10m".') from None


def _unwatched(glimpse: object) -> None:
    """A trial of which nobody wants to see how it goes on."""
