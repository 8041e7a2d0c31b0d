"""What a training thread may be at, and which of it the time between two probed calls was for."""

from __future__ import annotations

from enum import StrEnum

from hotloop.measurement import Kind


class Phase(StrEnum):
    DATA = "data"
    COPY = "copy"
    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    EVALUATION = "evaluation"
    REST = "rest"


STEP_PHASES = (
    Phase.DATA,
    Phase.COPY,
    Phase.FORWARD,
    Phase.BACKWARD,
    Phase.OPTIMIZER,
    Phase.REST,
)

PHASE_OF = {
    Kind.DATA_BEGIN // 2: Phase.DATA,
    Kind.COPY_BEGIN // 2: Phase.COPY,
    Kind.FORWARD_BEGIN // 2: Phase.FORWARD,
    Kind.NO_GRAD_BEGIN // 2: Phase.FORWARD,
    Kind.BACKWARD_BEGIN // 2: Phase.BACKWARD,
    Kind.OPTIMIZER_BEGIN // 2: Phase.OPTIMIZER,
    Kind.ZERO_GRAD_BEGIN // 2: Phase.OPTIMIZER,
}

# Time between two probed calls, by what stands before and after it. The loss is computed between
# the model and backward(), and wholly before backward() where no module is called, or only by its
# forward(); gradients are clipped and unscaled between backward() and the optimizer. What an
# optimizer does before a closure's forward pass is the closure's: there is nothing to update with
# yet. Every other gap is the rest, and is shown as unaccounted for.
_PHASE_OF_GAP: dict[tuple[int, int | None], Phase] = {
    (Kind.FORWARD_END, Kind.BACKWARD_BEGIN): Phase.FORWARD,
    (Kind.FORWARD_END, Kind.FORWARD_BEGIN): Phase.FORWARD,
    (Kind.FORWARD_END, Kind.ZERO_GRAD_BEGIN): Phase.FORWARD,
    (Kind.OPTIMIZER_END, Kind.BACKWARD_BEGIN): Phase.FORWARD,
    (Kind.ZERO_GRAD_END, Kind.BACKWARD_BEGIN): Phase.FORWARD,
    (Kind.DATA_END, Kind.BACKWARD_BEGIN): Phase.FORWARD,
    (Kind.COPY_END, Kind.BACKWARD_BEGIN): Phase.FORWARD,
    (Kind.OPTIMIZER_BEGIN, Kind.FORWARD_BEGIN): Phase.REST,
    (Kind.BACKWARD_END, Kind.OPTIMIZER_BEGIN): Phase.OPTIMIZER,
    (Kind.COPY_END, Kind.COPY_BEGIN): Phase.COPY,
}

# Until the pass begins that gradients are cleared for, scripts clear them wherever they like: that
# tells nothing of the time before. What tells is the next call of any other kind.
_CLEARED_ANYWHERE = frozenset(
    {Kind.OPTIMIZER_END, Kind.ZERO_GRAD_END, Kind.DATA_END, Kind.COPY_END}
)

# A script without a loader makes its batch somewhere between the optimizer and the forward pass.
_PHASE_OF_GAP_WITHOUT_LOADER = _PHASE_OF_GAP | {
    (before, after): Phase.DATA
    for before in (Kind.OPTIMIZER_END, Kind.ZERO_GRAD_END)
    for after in (Kind.COPY_BEGIN, Kind.FORWARD_BEGIN)
}

# Between two passes of one step the second is made ready: its part of the batch is taken.
_PHASE_OF_GAP_INSIDE_A_STEP = {(Kind.BACKWARD_END, Kind.FORWARD_BEGIN): Phase.FORWARD}

_UPDATING = (Kind.BACKWARD_END, Kind.OPTIMIZER_BEGIN)


def phase_of_gaps(
    kinds: list[int], ends_a_step: int, clipping: bool
) -> dict[tuple[int, int | None], Phase]:
    """By the kinds before and after one; what is in none of them is the call's around it.

    `clipping`: whether what is done between backward() and the optimizer counts as the optimizer.
    """
    gaps = _PHASE_OF_GAP if Kind.DATA_END in kinds else _PHASE_OF_GAP_WITHOUT_LOADER
    if ends_a_step == Kind.OPTIMIZER_END:  # else each backward pass ends a step
        gaps = gaps | _PHASE_OF_GAP_INSIDE_A_STEP
    return gaps if clipping else {gap: gaps[gap] for gap in gaps if gap != _UPDATING}


def following(kinds: list[int]) -> list[int | None]:
    """What tells, after each event, what the time up to the next one was for."""
    found: list[int | None] = []
    next_one: int | None = None
    no_clearing: int | None = None
    for kind in reversed(kinds):
        found.append(no_clearing if kind in _CLEARED_ANYWHERE else next_one)
        next_one = kind
        if kind // 2 != Kind.ZERO_GRAD_BEGIN // 2:
            no_clearing = kind
    return found[::-1]
