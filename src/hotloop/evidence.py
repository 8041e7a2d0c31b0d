"""What an examined trial shows of the training itself, beside its speed. Raw: `equivalence` judges.

A trial is examined apart from timing. Its randomness is pinned: the seeds, what a dataset draws,
and dropout, which is off.
"""

from __future__ import annotations

from dataclasses import dataclass, field

NOT_BEGUN, NOT_ENDED = "could not begin from the reference's weights", "could not be compared"
"""Of a step: nothing is known of its arithmetic then, good or bad."""


@dataclass(frozen=True)
class StepSeen:
    """One optimizer's step, or one that a gradient scaler skipped."""

    optimizer: int
    taken: bool
    moved: bool
    """Whether it changed any of the weights that were looked at."""
    passes: int
    """Backward passes since the step before."""
    clips: int
    """Calls that clipped gradients, since the step before."""


@dataclass(frozen=True)
class SettingSeen:
    """A parameter group's setting, where it is new or has changed."""

    step: int
    optimizer: int
    group: int
    name: str
    value: str


@dataclass(frozen=True)
class Given:
    """What a loader delivered or a model was given to train on."""

    stream: str
    """"loader 0", "model 1": where it came along."""
    step: int
    """How many steps had been made before."""
    samples: int
    checksum: str


@dataclass(frozen=True)
class Structure:
    steps: list[StepSeen] = field(default_factory=list)
    settings: list[SettingSeen] = field(default_factory=list)
    given: list[Given] = field(default_factory=list)
    by_step: list[Given] = field(default_factory=list)
    """What a model was given in each step, whatever passes that came in. Only of a loop of ours."""


@dataclass(frozen=True)
class Difference:
    """One tensor after a step from the reference's own weights, against the reference's."""

    step: int
    quantity: str
    """"gradient" or "update"; "change" of what is kept and not trained; "count": a whole number as
    the steps before have left it."""
    tensor: str
    reference: float
    """Its norm in the reference."""
    difference: float | None
    """The norm of the difference. None: it is missing, or not a number."""
    along: float
    """The part of it that lies along the reference: 1 where the two are equal."""
    ulp: float
    """The norm of one rounding of the tensor itself."""
    unsettled: float = 0.0
    """Of an update: the norm of its difference where rounding has decided what the gradient is."""
    undecided: int = 0
    """Of how many of its numbers that is so."""


@dataclass(frozen=True)
class KeptSeen:
    """What models keep beside what is trained, running statistics say, after compared steps."""

    step: int
    tensors: int
    changed: int
    """By the steps, here or in the reference."""
    in_part: int
    """Too large to be compared but for some of their numbers."""


@dataclass(frozen=True)
class Evidence:
    structure: Structure = field(default_factory=Structure)
    differences: list[Difference] = field(default_factory=list)
    forced: list[int] = field(default_factory=list)
    """Steps that began from the reference's weights and optimizer state."""
    draws: bool = False
    """Whether a model drew random numbers, dropout apart."""
    problem: str = ""
    """Why the weights could not be saved or loaded."""
    kept: list[KeptSeen] | None = None
    """None: of a hotloop that did not look at it."""


@dataclass(frozen=True)
class Delivered:
    """A batch that a loader has delivered in a soak, in the order they came."""

    loader: int
    number: int
    """Of the pass: 1 is the first."""
    checksum: str


@dataclass(frozen=True)
class SoakSeen:
    """What a soak trial met."""

    passes: int = 0
    """Begun, over the loader that steps are made on."""
    short_batch: bool = False
    """A step was made on a batch smaller than the others."""
    evaluation: bool = False
    """A model that learns was called without gradients, or another loader read between passes."""
    loaded: bool = False
    """It went on from the state it was given, and has made a step since."""
    saved: bool = False
    problem: str = ""
    """Why the state could not be loaded or saved."""
    delivered: list[Delivered] | None = None
    """In the first two passes. None: of a hotloop that did not look at it."""
