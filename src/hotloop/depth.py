"""What a trial under a profiler shows: tables, and files that other tools open.

None of it is a timing of the job: every profiler slows down what it watches, and some parts more
than others. Times here are to be compared with each other only. A table that could not be taken is
None, and `problems` says why.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from hotloop.inspection import Frame


class Depth(StrEnum):
    QUICK = "quick"
    """Timers alone."""
    PYTHON = "python"
    """Functions, lines, and memory that grows."""
    TORCH = "torch"
    """Operators and modules."""
    KERNEL = "kernel"
    """Everything, in order of time, for a viewer."""


@dataclass(frozen=True)
class FunctionRow:
    file: str
    """"~" for one that is built in."""
    line: int
    name: str
    calls: int
    primitive_calls: int
    """Those that were not made from inside the function itself."""
    own: float
    """Seconds, without the functions it called."""
    cumulative: float
    is_users: bool = False


@dataclass(frozen=True)
class FunctionTable:
    """Every function that was called on the training thread during some steps."""

    steps: int
    seconds: float
    rows: list[FunctionRow]
    """The dearest first, by their own time."""


@dataclass(frozen=True)
class SampledLine:
    """A line of the user's own, and how long it or what it calls was seen running."""

    worker: int | None
    """Of the loader. None: the job's own process."""
    place: Frame
    seconds: float
    share: float
    """Of all that was seen of the same process, or of all workers together."""


@dataclass(frozen=True)
class MemoryLine:
    """Memory that a line took during some steps, and that was not given back."""

    place: Frame
    bytes: int
    count: int
    """Of blocks, or of tensors."""


@dataclass(frozen=True)
class MemoryGrowth:
    """The difference between two steps: what is taken and given back in each does not show."""

    steps: int
    """How many lie between the two."""
    lines: list[MemoryLine]


@dataclass(frozen=True)
class OperatorRow:
    """Times in seconds over all the steps; those of the GPU are None where it was not seen."""

    name: str
    shapes: str
    """Of its inputs: "[32, 784] [784, 128]"."""
    calls: int
    cpu_own: float
    cpu_total: float
    gpu_own: float | None = None
    gpu_total: float | None = None


@dataclass(frozen=True)
class ModuleRow:
    """A module with everything inside it; `own` is without the modules inside it."""

    path: str
    """"Net.layer1.0": the model's class, then the names of its attributes."""
    kind: str
    calls: int
    forward_cpu: float
    backward_cpu: float
    own_cpu: float
    forward_gpu: float | None = None
    backward_gpu: float | None = None
    own_gpu: float | None = None


@dataclass(frozen=True)
class OperatorTable:
    steps: int
    operators: list[OperatorRow]
    modules: list[ModuleRow]


@dataclass(frozen=True)
class MemoryTimeline:
    """What torch's allocator had handed out, whenever that changed."""

    device: str
    seconds: list[float] = field(default_factory=list)
    """Since the trace began."""
    allocated: list[int] = field(default_factory=list)
    """On the host only what was allocated since then: the profiler does not know of the rest."""

    @property
    def peak(self) -> int:
        return max(self.allocated, default=0)


@dataclass(frozen=True)
class DepthReport:
    kind: str
    functions: FunctionTable | None = None
    lines: list[SampledLine] = field(default_factory=list)
    growth: MemoryGrowth | None = None
    """Of Python's objects and NumPy's arrays."""
    tensor_growth: MemoryGrowth | None = None
    """Of tensors, on whichever device."""
    operators: OperatorTable | None = None
    memory: list[MemoryTimeline] = field(default_factory=list)
    traced_steps: int = 0
    files: list[str] = field(default_factory=list)
    """Names in the trial's folder."""
    problems: list[str] = field(default_factory=list)
    """What could not be taken, and why: a sentence each."""
