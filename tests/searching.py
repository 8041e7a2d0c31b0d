"""A job on paper: a launcher that answers as real trials would, and somebody who listens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

from hotloop import machine
from hotloop.evidence import Difference, Evidence, Given, SettingSeen, SoakSeen, StepSeen, Structure
from hotloop.job import ScriptJob
from hotloop.measurement import Inventory, Losses, Measurement, Memory, Software
from hotloop.optimization import optimize
from hotloop.plan import Plan
from hotloop.study import Found, Options, Study
from hotloop.trial.order import Glimpse, Order, Watcher
from hotloop.trial.spec import Exam, Soak
from hotloop.trial.trial import State, Trial
from hotloop.workshop.watching import Outlook
from tests import builders
from tests.simulated import Law, gains, words

SECONDS = 4.0
"""That a trial takes."""


@dataclass
class PaperJob:
    """20 ms a step on a GPU, unless a plan does something about it."""

    law: Law = field(default_factory=gains)
    """How many times as long a step takes under these optimisations; None: it crashes."""
    memory: Law = field(default_factory=gains)
    changes: frozenset[str] = frozenset()
    """Optimisations under which the learning rate is another."""
    breaks: frozenset[str] = frozenset()
    """Optimisations under which no state can be loaded."""
    stops_at: int | None = None
    """The trial that the user interrupts."""
    answer: Callable[[Order, Trial], Trial] = lambda order, trial: trial
    """For a test to change what a trial comes to."""
    orders: list[Order] = field(default_factory=list)

    def launch(self, order: Order, watcher: Watcher) -> Trial:
        self.orders.append(order)
        watcher(Glimpse(0.0, 0, None, b""))
        trial = builders.trial(
            number=order.number, plan=order.plan, purpose=order.purpose, seconds=SECONDS
        )
        if len(self.orders) == self.stops_at:
            return replace(trial, state=State.INTERRUPTED, reason="Stopped.", measurement=None)
        return self.answer(order, self._answer(order, trial))

    @property
    def purposes(self) -> list[str]:
        return [order.purpose for order in self.orders]

    def plans(self, purpose: str) -> list[frozenset[str]]:
        return [levers(order.plan) for order in self.orders if order.purpose == purpose]

    def _answer(self, order: Order, trial: Trial) -> Trial:
        measured = self._measured(order)
        if measured is None:
            return replace(trial, state=State.CRASHED, reason="It crashed.", measurement=None)
        if order.exam is not None:
            losses = Losses(list(range(order.exam.steps)), [0.5] * order.exam.steps)
            evidence = self._evidence(order.exam, levers(order.plan))
            return replace(trial, measurement=replace(measured, losses=losses), evidence=evidence)
        if order.soak is not None:
            return replace(trial, measurement=measured, soak=self._soaked(order.soak, order.plan))
        return replace(trial, measurement=measured)

    def _measured(self, order: Order) -> Measurement | None:
        chosen = frozenset(words(order.plan))
        times, size = self.law(chosen), self.memory(chosen)
        if times is None or size is None:
            return None
        # No two processes are alike; and a trial that is run again is as it was.
        ms = 20 * times * (1 + 0.001 * (order.number * 7 % 5))
        log = builders.Log()
        for _ in range(20):
            log.data(ms * 0.2, 8).forward(ms * 0.3, 8).backward(ms * 0.4).optimizer(ms * 0.1)
        return builders.measurement(
            log.events,
            software=Software(python="3.11.9", torch="2.13.0", device=builders.GPU),
            memory=Memory(host_peak=2**30, device_peak_allocated=round(size * 2**30)),
            inventory=Inventory(
                models=[builders.model(convolutions=3)],
                optimizers=[builders.optimizer()],
                loaders=[builders.loader(workers=0)],
                optimizer_built=True,
            ),
        )

    def _evidence(self, exam: Exam, chosen: frozenset[str]) -> Evidence:
        if exam.is_reference:
            Path(exam.folder).mkdir()
        rate = "0.09" if self.changes & chosen else "0.1"
        structure = Structure(
            steps=[StepSeen(0, True, True, 1, 0)] * exam.steps,
            settings=[SettingSeen(0, 0, 0, "lr", rate)],
            given=[Given("loader 0", step, 8, f"batch {step}") for step in range(exam.steps)],
        )
        differences = [
            Difference(step, quantity, "weight", 1.0, 1e-7, 1.0, 1e-7)
            for step in exam.forced
            for quantity in ("gradient", "update")
        ]
        return Evidence(structure, differences, list(exam.forced))

    def _soaked(self, soak: Soak, plan: Plan) -> SoakSeen:
        loaded = Path(soak.load).is_file() if soak.load else False
        problem = "" if loaded or not soak.load else "there is no state to go on from"
        if self.breaks & levers(plan):
            problem = "the state cannot be loaded"
        if soak.save:
            Path(soak.save).touch()
        return SoakSeen(2, True, True, loaded=loaded, saved=bool(soak.save), problem=problem)


class Listener:
    def __init__(self) -> None:
        self.outlooks: list[Outlook] = []
        self.begun: list[tuple[int, str]] = []
        self.ends: list[int] = []

    def planned(self, study: Study, outlook: Outlook) -> None:
        self.outlooks.append(outlook)

    def began(self, number: int, purpose: str, plan: Plan) -> None:
        self.begun.append((number, purpose))

    def glimpsed(self, glimpse: Glimpse) -> None: ...

    def ended(self, trial: Trial, study: Study) -> None:
        assert study.trials[-1] == trial
        self.ends.append(trial.number)


def levers(plan: Plan) -> frozenset[str]:
    return frozenset(one.lever for one in plan.levers)


def crashing(*which: str, **each: float) -> Law:
    """A law of gains under which some optimisations crash."""
    law = gains(**each)
    return lambda chosen: None if chosen & {*which} else law(chosen)


def timed_out(order: Order, trial: Trial, **changes: Any) -> Trial:
    reason = f"The script was stopped after its limit of {order.limit_seconds:g} seconds."
    ended: dict[str, Any] = {"state": State.TIMED_OUT, "reason": reason, "measurement": None}
    return replace(trial, **{**ended, "seconds": order.limit_seconds, **changes})


TWO = Options(only=("bf16", "loader_workers"))
LIMIT = 600.0


def search(
    paper: PaperJob,
    folder: Path,
    options: Options = TWO,
    listener: Listener | None = None,
    job: ScriptJob | None = None,
    **more: Any,
) -> Study:
    folder.mkdir(parents=True, exist_ok=True)
    told = listener or Listener()
    with (
        mock.patch.object(machine, "describe", builders.machine),
        mock.patch.object(machine, "gpu_neighbours", lambda: ("A neighbour.",)),
    ):
        return optimize(job or builders.job(), options, LIMIT, folder, paper, told, **more)


def found(record: Study) -> Found:
    assert record.found is not None
    return record.found


def reasons(record: Study) -> dict[str, str]:
    return {one.lever: one.reason for one in found(record).refused}


def acting(order: Order, trial: Trial) -> Trial:
    """Under noise its models are given other things: as where an agent's actions decide which."""
    if trial.evidence is None or order.exam is None or order.exam.noise_bits is None:
        return trial
    given = [replace(one, checksum="other") for one in trial.evidence.structure.given]
    structure = replace(trial.evidence.structure, given=given)
    return replace(trial, evidence=replace(trial.evidence, structure=structure))
