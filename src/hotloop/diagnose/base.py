"""What a rule is given, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from hotloop.energy import PowerLog
from hotloop.figures import Figures
from hotloop.inspection import Frame, Inspection
from hotloop.measurement import LoaderSeen, Measurement
from hotloop.roof import Roof

LEAST_SHARE = 0.05
"""Of a step. What could win less is noise on most machines, and nobody's limit."""


class Effort(StrEnum):
    SETTING = "a setting"
    LINES = "a few lines"
    REWRITE = "a rewrite"


@dataclass(frozen=True)
class Case:
    """Everything that is known of a job when it is diagnosed."""

    measurement: Measurement
    """Of the timed trial."""
    figures: Figures
    loader: LoaderSeen | None
    """The one that training draws from."""
    cores: int
    inspection: Inspection | None = None
    """Of another trial, looked into and not timed. None: there was none."""
    looked: Measurement | None = None
    """That trial's own events: they say which phase a sample or a call fell into."""
    roof: Roof | None = None
    gpus: int = 0
    """Visible on the machine, whether the job uses one or not."""
    power: PowerLog | None = None
    """Of the timed trial."""
    ran_out: bool = False
    """Whether the script ended by itself while it was timed."""

    @property
    def on_gpu(self) -> bool:
        return self.measurement.software.device != "cpu"

    def share(self, *phases: str) -> float:
        """Of a step's time, on the CPU's clock."""
        return sum(phase.share for phase in self.figures.phases if phase.phase in phases)


@dataclass(frozen=True)
class Finding:
    rule: str
    """The file that found it."""
    title: str
    """One line, a statement: "93% of a step waits for data"."""
    share: float
    """Of the time of a step that would be gone without it: from 0 to 1."""
    remedy: str
    """What to do about it, one sentence."""
    effort: Effort
    evidence: tuple[str, ...] = ()
    """Figures that show it, a sentence each."""
    places: tuple[Frame, ...] = ()
    """Lines to look at, the dearest first."""
    levers: tuple[str, ...] = ()
    """Optimisations that address it."""
    cause: str = ""
    """What exactly, where the rule knows several: "decoding", "storage"."""
    is_limit: bool = True
    """False: a remark, worth knowing, which costs the step nothing now."""
    gains: dict[str, float] = field(default_factory=dict)
    """The share that an optimisation would win, of those for which that is another."""
    takes: float = 1.0
    """All that it takes of a step: nothing wins more by removing it, neither remedy nor lever."""

    def __post_init__(self) -> None:
        """Here, for every rule: whatever a remedy is reckoned to win, it cannot win more."""
        most = max(0.0, min(self.takes, 1.0))
        object.__setattr__(self, "share", max(0.0, min(self.share, most)))
        capped = {lever: min(gain, most) for lever, gain in self.gains.items()}
        object.__setattr__(self, "gains", capped)

    def won_by(self, lever: str) -> float:
        """The share of a step's time that it would win by itself: from 0 to 1."""
        return self.gains.get(lever, self.share)

    @property
    def gain(self) -> float:
        """How many times faster the job would be without it."""
        return times_as_fast(self.share)


def times_as_fast(share: float) -> float:
    """Without this share of a step's time."""
    return 1 / (1 - min(share, 0.99))


Rule = Callable[[Case], Finding | None]
"""None: nothing of the kind, or nothing that could show it was seen."""
