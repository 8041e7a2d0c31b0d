"""What an optimisation is.

A lever is a dataclass whose fields are its setting. It lives inside the job's process: it listens
at seams and changes what passes there, and afterwards it shows that it took effect. Its file
imports the standard library alone; torch is handed to `apply`, right after the job imported it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from hotloop.figures import Figures
    from hotloop.inspection import Inspection
    from hotloop.measurement import LoaderSeen, Measurement
    from hotloop.seams import Seams


MUCH_FASTER = 1.5
"""Times as fast as a job was: what was seen of it then need not hold any more. A GPU that never
waited for its CPU may do so when its own work takes half the time."""


class Group(StrEnum):
    DATA = "data"
    PRECISION = "precision"
    GRAPH = "graph"
    MEMORY = "memory"
    BATCH = "batch"
    PROCESS = "process"


class Effect(StrEnum):
    """What it does to the training. The user says how far to go."""

    SAME_MATH = "same_math"
    """The same arithmetic, up to the order of roundings and the random stream."""
    LOWER_PRECISION = "lower_precision"
    """Another number format."""
    CHANGES_TRAINING = "changes_training"
    """Another batch, schedule or sequence."""


@dataclass(frozen=True)
class Receipt:
    """Evidence that a lever took effect in this very process. Without it there is no result."""

    lever: str
    applied: bool
    reason: str = ""
    """Why not; empty when applied."""
    evidence: dict[str, int | float | str | bool] = field(default_factory=dict)
    once_seconds: float = 0.0
    """What it cost before the first step, where no step shows it: filling a cache, say."""


@dataclass(frozen=True)
class Seen:
    """What is known of a job before a lever is tried on it."""

    measurement: Measurement
    figures: Figures
    loader: LoaderSeen | None
    """The one that training draws from."""
    cores: int
    inspection: Inspection | None = None
    """Of another trial, looked into and not timed. None: there was none."""
    physical_cores: int | None = None
    """Fewer than the cores where two of those share all that computes."""
    nodes: int = 1
    """NUMA nodes that the cores lie on."""
    objective: str = "speed"
    """Or "memory": what the user wants less of."""
    only: tuple[str, ...] = ()
    """Optimisations that the user has named. Empty: any."""
    gpu_idle: float = 1.0
    """The share of a step that the GPU has nothing to do. 1: there is none, or nobody looked."""

    @property
    def on_gpu(self) -> bool:
        return self.measurement.software.device != "cpu"

    @property
    def is_compiled(self) -> bool:
        """By the script itself."""
        return any(model.compiled for model in self.measurement.inventory.models)

    def share(self, *phases: str) -> float:
        """Of a step's time, at the most.

        What a GPU computes takes as long as its own clock says. What the CPU does meanwhile costs
        a step no more than the GPU then idles: most of it may be waiting for the GPU.
        """
        cpu, gpu = (
            sum(one.share for one in clock if one.phase in phases)
            for clock in (self.figures.phases, self.figures.gpu_phases)
        )
        return max(gpu, min(cpu, self.gpu_idle)) if self.figures.gpu_phases else cpu


NO_MODEL = "no model was seen to be called in training"
"""Some are called in ways of their own. What would change them in place has nowhere to begin."""
GRAPHS_UNSEEN = "the script compiles its model itself, and its graphs are not seen"
"""Why nothing can be changed in them."""
NOT_LOOKED = "no run looked for what limits the job"
"""Why something is not known of it. The last part of a sentence."""


@dataclass(frozen=True)
class Expectation:
    """The share of a step that a lever could win, or the reason not to try it."""

    share: float
    reason: str = ""
    of_memory: bool = False
    """Where that is the objective: it is the share of the peak, which only some can tell."""
    worth_from: float = 1.0
    """Times as fast as it is that the job must have become: until then it could win nothing."""

    @property
    def is_worth_trying(self) -> bool:
        return not self.reason


def refuse(reason: str) -> Expectation:
    """`reason`: part of a sentence, in which "it" is the optimisation; the job is named."""
    return Expectation(0.0, reason)


def counted(number: int, noun: str) -> str:
    """Such as "1 worker", "2 workers"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


class Lever(ABC):
    name: ClassVar[str]
    summary: ClassVar[str]
    """One line, as a user reads it."""
    group: ClassVar[Group]
    effect: ClassVar[Effect]
    not_for_memory: ClassVar[str]
    """Why it is not tried where memory is the objective: what it takes of it, say. Empty where it
    may make the peak smaller, if only by the way."""
    mantissa: ClassVar[int | None] = None
    """Bits of the format that one of lower precision computes in."""
    regroups: ClassVar[bool] = False
    """Whether it takes the samples of a step in other passes than the job does."""
    compiles: ClassVar[bool] = False
    """Whether it calls torch's compiler, which takes its time once."""
    only_captures: ClassVar[bool] = False
    """Whether that has graphs captured and no code generated: it takes seconds, in every process
    anew, where code is found in a cache."""
    hides_model: ClassVar[bool] = False
    """Whether steps are replayed, so that nobody sees what the model is given."""
    requires: ClassVar[tuple[str, ...]] = ()
    conflicts: ClassVar[tuple[str, ...]] = ()

    @classmethod
    @abstractmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        """What to try on this job, the most promising first."""

    @classmethod
    def dear_settings(cls, seen: Seen) -> list[dict[str, Any]]:
        """What else to try where it has helped, if the user asks for it: it may take minutes."""
        return []

    @classmethod
    def late_changes(cls, seen: Seen) -> list[dict[str, Any]]:
        """What to change in the setting that has helped, once the job has become much faster."""
        return []

    @classmethod
    @abstractmethod
    def expected(cls, seen: Seen) -> Expectation:
        """How much it could win here, by what was measured."""

    @classmethod
    def effect_on(cls, seen: Seen) -> tuple[Effect, str]:
        """What it does to the training of this job, and why that is more than usual, if it is."""
        return cls.effect, ""

    def problem(self) -> str:
        """What is wrong with this setting; empty when nothing is."""
        return ""

    def environment(self) -> dict[str, str]:
        """Variables to set before the process starts."""
        return {}

    @abstractmethod
    def apply(self, torch: Any, seams: Seams) -> None:
        """Listen where something is to be changed."""

    @abstractmethod
    def receipt(self) -> Receipt:
        """Asked once some steps have been made."""

    def applied(self, **evidence: int | float | str | bool) -> Receipt:
        return Receipt(self.name, True, evidence=evidence)

    def not_applied(self, reason: str) -> Receipt:
        return Receipt(self.name, False, reason)
