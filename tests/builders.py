"""Makers of what tests are about: event logs that read like a training loop, and fake trials."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from hotloop.job import ScriptJob
from hotloop.machine import Machine
from hotloop.measurement import (
    Events,
    GpuTimes,
    Inventory,
    Kind,
    LoaderSeen,
    Measurement,
    Memory,
    ModelSeen,
    OptimizerSeen,
    Software,
)
from hotloop.plan import Plan
from hotloop.trial.trial import State, Trial

GPU = "NVIDIA H200"


class Log:
    """An event log, told in order. Every call lets its milliseconds pass."""

    def __init__(self) -> None:
        self.events = Events()
        self._now = 0

    @property
    def now(self) -> int:
        return self._now

    def wait(self, ms: float) -> Log:
        """Time that no probe sees."""
        self._now += round(ms * 1e6)
        return self

    def mark(self, kind: Kind, key: int = 0, n: int = 0) -> Log:
        events = self.events
        events.time_ns.append(self._now)
        events.kind.append(kind)
        events.key.append(key)
        events.n.append(n)
        return self

    @contextmanager
    def inside(self, begin: Kind, key: int = 0, n: int = 0) -> Iterator[None]:
        """What happens in the body is nested in the call that begins here."""
        self.mark(begin, key, n)
        yield
        self.mark(Kind(begin + 1), key, n)

    def data(self, ms: float, n: int = 0, key: int = 0) -> Log:
        return self._call(Kind.DATA_BEGIN, ms, key, n)

    def copy(self, ms: float) -> Log:
        return self._call(Kind.COPY_BEGIN, ms, 0, 0)

    def forward(self, ms: float, n: int = 0, key: int = 0) -> Log:
        return self._call(Kind.FORWARD_BEGIN, ms, key, n)

    def no_grad(self, ms: float, n: int = 0, key: int = 0) -> Log:
        return self._call(Kind.NO_GRAD_BEGIN, ms, key, n)

    def backward(self, ms: float, key: int = 0) -> Log:
        return self._call(Kind.BACKWARD_BEGIN, ms, key, 0)

    def optimizer(self, ms: float, key: int = 0) -> Log:
        return self._call(Kind.OPTIMIZER_BEGIN, ms, key, 0)

    def zero_grad(self, ms: float, key: int = 0) -> Log:
        return self._call(Kind.ZERO_GRAD_BEGIN, ms, key, 0)

    def step(self, n: int = 8) -> Log:
        """An ordinary step of 20 ms: 4 of data, 5 forward, 8 backward, 3 for the optimizer."""
        return self.data(4, n).forward(5, n).backward(8).optimizer(3)

    def _call(self, begin: Kind, ms: float, key: int, n: int) -> Log:
        with self.inside(begin, key, n):
            self.wait(ms)
        return self


def training(steps: int = 20, first: float = 0.0) -> Log:
    """Ordinary steps, the first of them `first` milliseconds longer."""
    log = Log().wait(0).data(4, 8).forward(5, 8).wait(first).backward(8).optimizer(3)
    for _ in range(steps - 1):
        log.step()
    return log


def on_gpu(events: Events, *kinds: Kind) -> GpuTimes:
    """The GPU saw these kinds of events at the very times the host did."""
    seen = [index for index, kind in enumerate(events.kind) if kind in kinds]
    return GpuTimes(event=seen, ms=[events.time_ns[index] / 1e6 for index in seen])


def loader(**changes: Any) -> LoaderSeen:
    seen = LoaderSeen(
        name="DataLoader",
        dataset="Digits",
        samples=800,
        batches=100,
        batch_size=8,
        workers=2,
        prefetch=2,
        persistent=False,
        pinned=False,
        drop_last=False,
        shuffled=True,
    )
    return replace(seen, **changes)


def model(**changes: Any) -> ModelSeen:
    seen = ModelSeen(
        name="Net",
        parameters=12_345,
        trainable=12_345,
        dtypes=["float32"],
        devices=["cpu"],
        compiled=False,
        channels_last=False,
        calls=20,
    )
    return replace(seen, **changes)


def optimizer(**changes: Any) -> OptimizerSeen:
    seen = OptimizerSeen(
        name="AdamW", parameters=12_345, groups=1, fused=False, foreach=None, steps=20
    )
    return replace(seen, **changes)


def measurement(events: Events | None = None, **changes: Any) -> Measurement:
    """A job of one model, one optimizer and one loader, measured on a CPU."""
    made = Measurement(
        software=Software(python="3.11.9", torch="2.13.0"),
        events=training().events if events is None else events,
        memory=Memory(host_peak=512 * 2**20),
        inventory=Inventory(
            models=[model()],
            optimizers=[optimizer()],
            loaders=[loader()],
            optimizer_built=True,
            threads=2,
        ),
    )
    return replace(made, **changes)


def trial(**changes: Any) -> Trial:
    """One that completed."""
    made = Trial(
        number=7,
        plan=Plan(),
        state=State.COMPLETE,
        reason="",
        seconds=3.5,
        exit_status=0,
        measurement=measurement(),
        log="trial-1/output.log",
    )
    return replace(made, **changes)


def job(folder: Path | str = "/nowhere", **changes: Any) -> ScriptJob:
    made = ScriptJob("train.py", False, ("--lr", "3e-4"), "/usr/bin/python3", str(folder))
    return replace(made, **changes)


def machine() -> Machine:
    return Machine("Linux 6.1", "A CPU", 2, 2**33, (), None)
