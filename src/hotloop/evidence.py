"""What an examined trial shows of the training itself, beside its speed. Raw: `equivalence` judges.

A trial is examined apart from timing. Its randomness is pinned: the seeds, what a dataset draws,
and dropout, which is off.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class StepSeen:
    """One optimizer's step, or one that a gradient scaler skipped."""

    optimizer: int
    taken: bool
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


@dataclass(frozen=True)
class Difference:
    """One tensor after a step from the reference's own weights, against the reference's."""

    step: int
    quantity: str
    """"gradient" or "update"."""
    tensor: str
    reference: float
    """Its norm in the reference."""
    difference: float
    """The norm of the difference. Not a number is infinity here."""
    along: float
    """The part of it that lies along the reference: 1 where the two are equal."""


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
