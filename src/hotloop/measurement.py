"""What one trial observed, raw: every event with its time, every loss, every byte.

Nothing here is a statistic. `timeline` turns events into steps and phases, `stats` turns steps into
figures; both can be run again, years later, on a measurement that was kept.

Events are columns rather than objects: a trial has thousands, and a probe must cost microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum


class Kind(IntEnum):
    """A begin is even and its end is the next odd number: `kind // 2` says what it was."""

    DATA_BEGIN = 0
    DATA_END = 1
    """A loader is asked for a batch. key: which loader; n: samples, or -1 when it had no more."""
    COPY_BEGIN = 2
    COPY_END = 3
    """A tensor moves from host to device. key: 1 when non-blocking; n: bytes."""
    FORWARD_BEGIN = 4
    FORWARD_END = 5
    """A root module runs, gradients on. key: which module; n: samples it was given, negative where
    a model has made some of what it was given: those were counted."""
    NO_GRAD_BEGIN = 6
    NO_GRAD_END = 7
    """A root module runs without gradients: evaluation, sampling, a target network."""
    BACKWARD_BEGIN = 8
    BACKWARD_END = 9
    """key: 0 for backward(), 1 for autograd.grad()."""
    OPTIMIZER_BEGIN = 10
    OPTIMIZER_END = 11
    """An optimizer steps. key: which optimizer. A closure's passes are nested inside."""
    ZERO_GRAD_BEGIN = 12
    ZERO_GRAD_END = 13


@dataclass(frozen=True)
class Events:
    time_ns: list[int] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    key: list[int] = field(default_factory=list)
    n: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.time_ns)

    def times_at(self, places: list[int]) -> list[int]:
        """Of single events."""
        return list(map(self.time_ns.__getitem__, places))


@dataclass(frozen=True)
class GpuTimes:
    """Where some of the events lay on the GPU's own clock, read after the run."""

    event: list[int] = field(default_factory=list)
    """Index into Events."""
    ms: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Spans:
    """Of time, on the clock of the events."""

    begin_ns: list[int] = field(default_factory=list)
    end_ns: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Losses:
    event: list[int] = field(default_factory=list)
    """Index of the BACKWARD_BEGIN that differentiated it."""
    value: list[float | None] = field(default_factory=list)
    """None where the number was NaN or infinite, which JSON cannot hold; see `not_finite`."""
    not_finite: int = 0


@dataclass(frozen=True)
class Memory:
    """Peaks in bytes. None: unknown, which is not the same as nothing."""

    host_peak: int | None = None
    device_peak_allocated: int | None = None
    device_peak_reserved: int | None = None
    device_total: int | None = None
    worker_peaks: list[int] = field(default_factory=list)
    weights: int | None = None
    """What models and optimizers held at the end, where the first of the parameters lies."""
    gradients: int | None = None
    optimizer: int | None = None
    children_peak: int | None = None
    """What child processes held that lived at the same time, beyond what they share with others.
    None in studies of a hotloop that did not look, and where there is no /proc."""

    @property
    def peak(self) -> int | None:
        """The GPU's where it was used: it is what a job runs out of."""
        return self.device_peak_allocated or self.host_together

    @property
    def host_together(self) -> int | None:
        """Of the main process and its children."""
        return None if self.host_peak is None else self.host_peak + (self.children_peak or 0)

    @property
    def counts_children(self) -> bool:
        """Whether its peak is also that of child processes."""
        return not self.device_peak_allocated and bool(self.children_peak)


@dataclass(frozen=True)
class ModelSeen:
    name: str
    parameters: int
    trainable: int
    dtypes: list[str]
    devices: list[str]
    compiled: bool
    channels_last: bool
    calls: int
    convolutions: int = 0
    """Weights with the four or five dimensions that a 2D or 3D convolution's have."""
    batch_norms: int = 0
    """Modules that normalise by what is in one pass."""
    blocks: int = 0
    """Modules in it that are made alike, such as a transformer's layers."""
    odd_sizes: list[int] = field(default_factory=list)
    """Of its matrices: those that the alignment of 16-bit products does not divide."""
    convolutions_1d: int = 0
    """Modules: three dimensions are no sign of a convolution, other weights have them too."""
    large_matrices: int | None = None
    """Those that a product in 8 bits is worth its casts for. None: nobody counted them."""
    foldable: int = 0
    """Convolutions over few channels in strides: `levers.folding` has them."""

    @property
    def convolves(self) -> bool:
        return self.convolutions + self.convolutions_1d > 0


@dataclass(frozen=True)
class OptimizerSeen:
    name: str
    parameters: int
    groups: int
    fused: bool
    foreach: bool | None
    steps: int
    tensors: int = 0
    """Its parameters, each counted once."""


@dataclass(frozen=True)
class LoaderSeen:
    name: str
    dataset: str
    samples: int | None
    batches: int | None
    """Batches in one pass. None where the loader does not know its length."""
    batch_size: int | None
    workers: int
    prefetch: int | None
    persistent: bool
    pinned: bool
    drop_last: bool
    shuffled: bool
    names_files: bool | None = None
    """Whether its dataset names a file or folder that exists. None: nobody looked."""


@dataclass(frozen=True)
class Precision:
    autocast: str | None = None
    """The dtype of the autocast the job runs its forward passes under, if it does."""
    grad_scaler: bool = False
    tf32_matmul: bool = False
    tf32_cudnn: bool = False
    cudnn_benchmark: bool = False
    deterministic: bool = False
    """The script wants the same bits every time, of cuDNN or of all of torch."""
    default_dtype: str = "float32"
    """Of tensors that are made without one."""


@dataclass(frozen=True)
class LoopSeen:
    """Of a job that is described, and whose loop is ours."""

    batch_size: int
    """Samples to one step of the optimizer."""
    microbatch: int
    """Samples to one pass."""
    resizable: bool = True
    """Whether batches are put together by us, rather than by what the job's data() returns."""
    augments: bool = False
    """Whether it declares an augmentation."""
    length: int = 0
    """Tokens to a sequence, where batches are sequences of tokens and nothing else."""


@dataclass(frozen=True)
class Inventory:
    """What was found in the script."""

    models: list[ModelSeen] = field(default_factory=list)
    optimizers: list[OptimizerSeen] = field(default_factory=list)
    loaders: list[LoaderSeen] = field(default_factory=list)
    precision: Precision = field(default_factory=Precision)
    optimizer_built: bool = False
    threads: int = 0
    loop: LoopSeen | None = None
    """None: the loop is the script's own."""


@dataclass(frozen=True)
class Software:
    python: str = ""
    torch: str = ""
    device: str = "cpu"
    """"cpu", or the GPU's name."""
    bfloat16: bool | None = None
    """Whether the GPU computes in it, rather than emulate it. None: not asked."""
    float8: bool | None = None
    """Whether the GPU multiplies in 8 bits. None: not asked."""
    torchao: bool = False
    """Whether the script's interpreter has it."""


@dataclass(frozen=True)
class Measurement:
    software: Software = field(default_factory=Software)
    events: Events = field(default_factory=Events)
    gpu: GpuTimes = field(default_factory=GpuTimes)
    losses: Losses = field(default_factory=Losses)
    memory: Memory = field(default_factory=Memory)
    inventory: Inventory = field(default_factory=Inventory)
    discovery_steps: int = 0
    """Steps during which root modules were still being looked for, and timing was disturbed."""
    compile_seconds: float | None = None
    compiling: Spans = field(default_factory=Spans)
    """When the plan's own optimisations compiled, or the script did beside them."""
    lost_events: int = 0
    """Events beyond what the probe was willing to keep."""
    script_compiling: Spans = field(default_factory=Spans)
    """When the script itself compiled, where no optimisation of a plan does."""
