"""What a trial that was looked into closely shows, raw. It is never timed: looking costs time.

Every column is as it was seen; `diagnose` computes what it means. A part that could not be seen is
None or empty, which is not the same as nothing having happened.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hotloop.tried import AnomalyTried, ThreadsTried
from hotloop.unused import UnusedGradients

PACKAGES = ("site-packages", "dist-packages")
"""Folders that hold what was installed, in an environment of the user's own too."""


@dataclass(frozen=True)
class Frame:
    """A line that runs. Its text is kept, because the file may change."""

    file: str
    line: int
    function: str
    is_users: bool = False
    """The user's own code: neither installed, nor Python's, nor torch's, nor ours."""
    source: str = ""


@dataclass(frozen=True)
class Samples:
    """Where the training thread was, looked up some hundred times a second."""

    frames: list[Frame] = field(default_factory=list)
    stacks: list[list[int]] = field(default_factory=list)
    """Indices into frames, outermost first."""
    time_ns: list[int] = field(default_factory=list)
    """On the clock of the events."""
    stack: list[int] = field(default_factory=list)
    """Index into stacks."""
    weight_ns: list[int] = field(default_factory=list)
    """How long since the look before: a call that keeps Python's lock delays the next one."""


@dataclass(frozen=True)
class LoaderLook:
    """What happens inside a loader, in one process: the job's own, or a worker."""

    worker: int | None
    """None: the job's own process."""
    item_seconds: list[float] = field(default_factory=list)
    """One entry a dataset item, or a batch of them where the dataset hands out batches."""
    item_cpu_seconds: list[float] = field(default_factory=list)
    """That the thread which fetched it computed, or wanted to and was given no core. Much less than
    the time it took: it waited, for a disk say."""
    collate_seconds: list[float] = field(default_factory=list)
    """One entry a batch."""
    batch_items: list[int] = field(default_factory=list)
    samples: Samples = field(default_factory=Samples)
    """Only of a worker: those of the job's own process are among the others."""
    item_queued_seconds: list[float] = field(default_factory=list)
    """Of `item_cpu_seconds`, those without a core: others had them. Empty: not known."""
    collate_queued_seconds: list[float] = field(default_factory=list)
    """Of `collate_seconds`, likewise."""
    loader: int | None = None
    """Its number among the events. None: not known."""
    draws: list[bool] = field(default_factory=list)
    """Of the first batch, whether random generators moved while its items were fetched."""


@dataclass(frozen=True)
class Synchronisation:
    """A call after which the CPU knows a value of the GPU's: it has waited for it."""

    what: str
    """".item()", "print", "if tensor", …"""
    stack: list[Frame]
    """Outermost first; the last of the user's own is the line to look at."""
    time_ns: list[int]
    """When each began, and how long it took."""
    seconds: list[float]


@dataclass(frozen=True)
class OperatorLine:
    """The operators that one line of the user's code queues, in the steps that were counted."""

    place: Frame
    operators: int
    seconds: float
    """Taken by them on the CPU while they were counted: to be compared with other lines only."""
    differentiated: int
    """How many of them the backward pass has to undo."""
    median_elements: int
    backward_seconds: float = 0.0
    """Taken by the operators of the backward pass that undo those of this line."""
    backward_operators: int = 0
    phase: str = "forward"
    """Or "optimizer": inside its step. Loading is left out."""
    modules: int = 1
    """In how many modules they were queued: the same line of fifty layers is no loop."""
    recurrent: int = 0
    """How many of them a recurrent layer of torch's queues: its loop over time is nobody's line."""
    on_gpu: int = 0
    """How many of them left their result there."""
    flops: float = 0.0
    """With those of the backward pass that undo them; and so the bytes read and written."""
    bytes: float = 0.0
    copied: float = 0.0
    """Bytes that they copied from the host to a GPU."""
    only_read: bool = False
    """Nothing but Python takes up what they compute: a number that is printed, a condition."""
    repeats: int = 0
    """How often the same piece of it queued the same operator, in the same module."""
    tables: tuple[int, int, float] = (0, 0, 0.0)
    """Of gradients of embeddings: their numbers, those at most that are not zero, and seconds."""


@dataclass(frozen=True)
class Attention:
    """Attention that is written out: scores, softmax and values as single operators."""

    place: Frame
    count: int
    queries: int
    keys: int
    seconds: float
    """Of its operators, forward, on the CPU, while they were counted."""
    elements: int = 0
    """Scores, of all of them together."""
    tells_weights: bool = False
    """torch's own MultiheadAttention wrote it out, for it was asked for the weights."""
    forgotten: int = 0
    """Of `count`, those that no backward pass needs: a frozen reference's, say."""


@dataclass(frozen=True)
class Operators:
    """Every operator of a few whole steps, run without compilation, forward and backward."""

    steps: int = 0
    count: int = 0
    seconds: float = 0.0
    flops: dict[str, float] = field(default_factory=dict)
    """By the number format of the operands. A multiplication and an addition are two."""
    convolution_flops: dict[str, float] = field(default_factory=dict)
    """Those of them that are convolutions', which have switches of their own."""
    bytes: float = 0.0
    """Read and written, each operand once, as if nothing were fused or cached."""
    by_name: dict[str, int] = field(default_factory=dict)
    without_formula: dict[str, int] = field(default_factory=dict)
    """Heavy operators whose FLOPs are not known: the count is a lower bound."""
    lines: list[OperatorLine] = field(default_factory=list)
    attention: list[Attention] = field(default_factory=list)


@dataclass(frozen=True)
class LossSeen:
    """A loss function of torch's that was called to learn from, while operators were counted."""

    function: str
    """"cross_entropy", …"""
    inside_model: bool
    """By a root module, not by the script itself."""
    calls: int
    elements: int
    """Of what it was given, all calls together."""
    itemsize: int
    """Bytes of each."""


@dataclass(frozen=True)
class Kernels:
    """Everything that ran on the GPU during a few steps, in order of its beginning."""

    steps: int = 0
    begin_ns: int = 0
    end_ns: int = 0
    """On the clock of the events: the whole window."""
    names: list[str] = field(default_factory=list)
    name: list[int] = field(default_factory=list)
    start_ns: list[int] = field(default_factory=list)
    duration_ns: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Allocator:
    """torch's allocator on the GPU, over the steps that were sampled."""

    retries: int = 0
    """Times it had to give everything back to the driver and ask again."""
    driver_calls: int = 0
    """Segments asked of the driver."""
    reserved: int = 0
    allocated: int = 0
    peak_allocated: int = 0
    steps: int = 0
    settings: str = ""
    """Which it was given by the environment, as they stand there."""


@dataclass(frozen=True)
class StepMemory:
    """What memory held over one step, by kind, in bytes. Run without compilation.

    Columns, of some of the operators in their order; the highest point is among them.
    """

    device: str
    """That the model lies on: "cpu", or "cuda:0"."""
    operators: int = 0
    """Of the whole step."""
    phase: list[str] = field(default_factory=list)
    """"data", "forward", "backward" or "optimizer"."""
    operator: list[int] = field(default_factory=list)
    """How many had run."""
    weights: list[int] = field(default_factory=list)
    gradients: list[int] = field(default_factory=list)
    optimizer: list[int] = field(default_factory=list)
    activations: list[int] = field(default_factory=list)
    """What the forward pass has left, as long as it is kept."""
    total: list[int] = field(default_factory=list)
    """On a GPU all that torch's allocator has handed out. On a CPU the tensors of the job, and
    those that were made in this step: what else the process holds is not known."""


@dataclass(frozen=True)
class Call:
    """A call that has no place in a training loop, or a dear one: empty_cache, torch.save."""

    what: str
    stack: list[Frame]
    time_ns: int
    seconds: float


@dataclass(frozen=True)
class Compilation:
    function: str
    file: str
    line: int
    seconds: float
    reason: str = ""
    """Why what had been compiled before did not fit."""


@dataclass(frozen=True)
class Pass:
    """A root module was called with gradients on, and none has reached what came out of it."""

    stack: list[Frame]
    time_ns: int
    seconds: float
    training: bool = False
    """It was in training mode."""


@dataclass(frozen=True)
class Inspection:
    steps: int = 0
    """Whole steps that were looked into."""
    samples: Samples = field(default_factory=Samples)
    loaders: list[LoaderLook] = field(default_factory=list)
    alone_seconds: list[float] = field(default_factory=list)
    """What a step took beyond loading, while the loader's workers stood still. One entry a step."""
    handed_seconds: list[float] = field(default_factory=list)
    """On a core, to receive a batch that a worker had made. One entry a batch."""
    kept_seconds: list[float] = field(default_factory=list)
    """Of a step, end to end, while a loader kept workers that it usually ends. One entry a pass."""
    threads_tried: ThreadsTried | None = None
    """None: the job has no more threads than there are cores."""
    anomaly_tried: AnomalyTried | None = None
    """None: the job has no anomaly detection on."""
    unused_gradients: UnusedGradients | None = None
    """None: no such gradients were seen."""
    synchronisations: list[Synchronisation] = field(default_factory=list)
    operators: Operators | None = None
    losses: list[LossSeen] = field(default_factory=list)
    kernels: Kernels | None = None
    """None where there is no GPU, or its counters cannot be read."""
    allocator: Allocator | None = None
    step_memory: StepMemory | None = None
    calls: list[Call] = field(default_factory=list)
    evaluations_with_gradients: list[Pass] = field(default_factory=list)
    compilations: list[Compilation] = field(default_factory=list)
    """Those during the steps that were looked into, when all should long have been compiled."""
    graph_breaks: dict[str, int] = field(default_factory=dict)
    """Reasons, as torch.compile gives them."""
    scaler_skips: int | None = None
    """Steps that a gradient scaler left out. None: there is none."""
    host_bytes: list[int] = field(default_factory=list)
    """Resident memory of the process after each step."""
    device_bytes: list[int] = field(default_factory=list)
    """Allocated on the GPU after each step."""
    major_faults: int = 0
    """Pages that had to be read back from a disk."""
    swapped: int | None = None
    """Bytes of the process that lie on a disk at the end."""
    problems: list[str] = field(default_factory=list)
    """What could not be looked at, and why."""
