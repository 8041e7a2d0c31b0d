"""What an experiment asks for, and what comes of it. Plain values."""

from __future__ import annotations

import math
import statistics
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.plan import LeverSetting

if TYPE_CHECKING:
    from hotloop.experiments.lab import Lab

FAILED = "–"


@dataclass(frozen=True)
class Case:
    """One workload in one setting, under some optimisations."""

    label: str
    workload: str
    """"mlp:MicrobatchMlp": module and class in `hotloop.workloads`."""
    settings: dict[str, Any] = field(default_factory=dict)
    levers: tuple[LeverSetting, ...] = ()


@dataclass(frozen=True)
class Run:
    """One process of a case."""

    step: float
    """Seconds, mean of the steady steps."""
    rate: float | None
    """Samples a second."""
    memory: int | None
    """Peak bytes: of the device, or of the host where there is none."""
    once: float
    """Seconds before steps are steady, beyond what the steps themselves take."""
    loss: float | None
    """The last one seen."""


@dataclass(frozen=True)
class Measured:
    case: Case
    runs: tuple[Run, ...]
    reason: str = ""
    """Why there are none, or fewer than asked for; empty when all came to their end."""

    @property
    def ran(self) -> bool:
        return bool(self.runs) and not self.reason

    @property
    def step(self) -> float | None:
        return statistics.geometric_mean(run.step for run in self.runs) if self.ran else None

    @property
    def rate(self) -> float | None:
        rates = [run.rate for run in self.runs if run.rate]
        return statistics.geometric_mean(rates) if self.ran and rates else None

    @property
    def memory(self) -> int | None:
        peaks = [run.memory for run in self.runs if run.memory is not None]
        return max(peaks) if self.ran and peaks else None

    @property
    def once(self) -> float | None:
        """Of the first process: later ones find what it has compiled."""
        return self.runs[0].once if self.ran else None

    @property
    def loss(self) -> float | None:
        return self.runs[-1].loss if self.ran else None


@dataclass(frozen=True)
class Gain:
    """How many times as fast one case is as another, by processes of the same round."""

    ratio: float
    low: float
    high: float
    """The least and the largest of the rounds."""


def gain(before: Measured, after: Measured) -> Gain | None:
    """By the time for one sample where both tell how many they saw, otherwise by the step."""
    if not before.ran or not after.ran:
        return None
    by_sample = all(run.rate for run in (*before.runs, *after.runs))
    ratios = [
        (now.rate or 0.0) / (then.rate or 1.0) if by_sample else then.step / now.step
        for then, now in zip(before.runs, after.runs, strict=False)
    ]
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    return Gain(mean, min(ratios), max(ratios))


@dataclass(frozen=True)
class Series:
    name: str
    points: tuple[tuple[str, float], ...]
    """What it stands under, and its height."""


@dataclass(frozen=True)
class Figure:
    kind: str
    """"bars" or "lines"."""
    title: str
    unit: str
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Outcome:
    """What an experiment came to: everything that is shown and kept of it."""

    name: str
    title: str
    where: str
    """The device and torch that it ran on."""
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    figure: Figure
    notes: tuple[str, ...] = ()
    """Sentences: what was found, and what was not shown."""
    measured: tuple[Measured, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)
    """Figures that do not stand in the cases, for whoever reads the JSON."""


class Experiment(ABC):
    name: ClassVar[str]
    summary: ClassVar[str]
    """One line, as `--list` shows it."""
    searches: ClassVar[bool] = False
    """Whether it runs only some of its cases, and can be held against all of them."""

    @abstractmethod
    def run(self, lab: Lab) -> Outcome:
        """Measures what it needs and says what came of it."""


def lever(name: str, **setting: Any) -> LeverSetting:
    return LeverSetting(name, setting)


def ran(measured: Sequence[Measured]) -> list[Measured]:
    return [one for one in measured if one.ran]
