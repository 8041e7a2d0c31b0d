"""Where an experiment's cases are measured: in fresh processes and in rounds, so that a machine
that slows down slows all of them."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop import codec, planned
from hotloop.experiments import finishing
from hotloop.experiments.base import Case, Measured, Run
from hotloop.figures import figures
from hotloop.job import ScriptJob
from hotloop.plan import Plan
from hotloop.profiling import diagnosed, look, profile
from hotloop.roof import Roof
from hotloop.study import Study
from hotloop.trial.environment import users_environment
from hotloop.trial.order import Launcher, Order, Watcher
from hotloop.trial.spec import StopRule
from hotloop.trial.trial import State, Trial

PACKAGE = "hotloop.workloads"


@dataclass(frozen=True)
class Asked:
    """What the user has asked for, where an experiment leaves a choice. None: its own."""

    batch_size: int | None = None
    precision: str | None = None
    runs: int = 3
    steps: int | None = None
    timeout: float = 600.0
    exhaustive: bool = False
    """Whether a search is to be held against all that it could have run."""


class Lab:
    def __init__(
        self,
        python: str,
        device: str,
        where: str,
        asked: Asked,
        folder: Path,
        launcher: Launcher,
        watcher: Watcher,
        roof: Callable[[], Roof | None] = lambda: None,
        say: Callable[[str], None] = lambda text: None,
        heed: Callable[[], None] = lambda: None,
    ) -> None:
        """`device`: "cpu" or "cuda". `where`: in words. `folder`: for what the trials leave.
        `heed`: called many times a second, and raises where the user wants to stop."""
        self.asked = asked
        self.on_gpu = device != "cpu"
        self.where = where
        self._device = device
        self._python = python
        self._folder = folder
        self._launcher = launcher
        self._watcher = watcher
        self._roof = roof
        self._say = say
        self._heed = heed
        self._trials = 0
        self._stop = StopRule(steps=asked.steps, min_steps=20, min_seconds=2.0, max_seconds=20.0)

    def measure(self, cases: Sequence[Case], runs: int | None = None) -> list[Measured]:
        """Every other round backwards. A case that failed is not tried again."""
        found: list[list[Run]] = [[] for _ in cases]
        reasons = [""] * len(cases)
        rounds = runs or self.asked.runs
        for number in range(rounds):
            order = list(range(len(cases)))
            for place in order if number % 2 == 0 else reversed(order):
                if reasons[place]:
                    continue
                self._say(f"{cases[place].label}, round {number + 1} of {rounds}")
                run, reasons[place] = self.once(cases[place])
                found[place] += [run] if run else []
        return [
            Measured(case, tuple(each), reason)
            for case, each, reason in zip(cases, found, reasons, strict=True)
        ]

    def once(self, case: Case) -> tuple[Run | None, str]:
        """One process of a case; or None, and why."""
        found = _read(self._trial(case))
        self._heed()  # one that was interrupted has shown nothing
        return found

    def trained(self, case: Case, **settings: Any) -> dict[str, Any]:
        """A training to its end, which nobody times: what the workload tells of it.

        `weights_out` and `compare` name weights, which are kept as long as the laboratory is.
        """
        self._say(f"{case.label}, to its end")
        with tempfile.TemporaryDirectory(prefix="hotloop-") as scratch:
            told = Path(scratch, "told.json")
            files = {
                name: str(self._folder / value)
                for name, value in settings.items()
                if name in ("weights_out", "compare")
            }
            job = self._job(case, {**settings, **files, "told": str(told)})
            environment, limit = _environment(case), self.asked.timeout
            reason = finishing.failure(job.argv(), environment, job.cwd, limit, self._heed)
            if reason or not told.is_file():
                return {"reason": reason or "it told nothing"}
            return codec.decode(told.read_bytes(), dict[str, Any])

    def profiled(self, case: Case) -> Study:
        """Timed once and looked into once, with what limits it and how near it is to the roof."""
        self._say(f"{case.label}, looked into")
        job, limit = self._job(case, {}), self.asked.timeout
        folder = self._next_folder()
        plan = _plan(case)
        args = (limit, folder, self._launcher, self._watcher)
        record = profile(job, plan, self._stop, *args)
        if record.trials[0].state is not State.COMPLETE:
            return record
        return diagnosed(look(record, job, *args), self._roof, folder)

    def close(self) -> None:
        """Leaves what each process said. Weights and compiled code are large, and have served."""
        shutil.rmtree(self._folder / "cache", ignore_errors=True)
        for weights in self._folder.glob("*.pt"):
            weights.unlink(missing_ok=True)

    def discard(self) -> None:
        """Leaves nothing at all: of an experiment that was stopped there is nothing to be told."""
        shutil.rmtree(self._folder, ignore_errors=True)
        base = self._folder.parent
        with contextlib.suppress(OSError):
            if [path.name for path in base.iterdir()] == [".gitignore"]:
                shutil.rmtree(base)
            base.parent.rmdir()  # unless there is something else in it

    def _trial(self, case: Case) -> Trial:
        folder = self._next_folder()
        order = Order(
            number=self._trials,
            job=self._job(case, {}),
            plan=_plan(case),
            stop=self._stop,
            limit_seconds=self.asked.timeout,
            folder=folder,
        )
        return self._launcher.launch(order, self._watcher)

    def _next_folder(self) -> Path:
        self._trials += 1
        folder = self._folder / f"trial-{self._trials}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _job(self, case: Case, more: dict[str, Any]) -> ScriptJob:
        module, _, entry = case.workload.partition(":")
        settings = {"device": self._device, **case.settings, **more}
        words = tuple(f"{name}={value}" for name, value in settings.items())
        return ScriptJob(f"{PACKAGE}.{module}", True, words, self._python, os.getcwd(), entry)


def _plan(case: Case) -> Plan:
    """At once: a first step as it is would be the peak of a case that takes less memory."""
    return Plan(case.levers, at_once=bool(case.levers))


def _environment(case: Case) -> dict[str, str]:
    return planned.environment(_plan(case), False) if case.levers else users_environment()


def _read(trial: Trial) -> tuple[Run | None, str]:
    found = figures(trial.measurement) if trial.measurement else None
    if trial.state is not State.COMPLETE or trial.measurement is None or found is None:
        return None, trial.reason or "Too few steps were seen."
    once = found.one_off_seconds + sum(receipt.once_seconds for receipt in trial.receipts)
    peak, step = trial.measurement.memory.peak, found.step.mean / trial.own_batches
    return Run(step, found.samples_per_second, peak, once, found.last_loss), ""
