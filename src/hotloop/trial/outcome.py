"""From what is left of a process to the state of its trial."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from hotloop.measurement import Kind, Measurement
from hotloop.trial.result import ChildResult, Ended
from hotloop.trial.saying import said
from hotloop.trial.trial import State


@dataclass(frozen=True)
class Leftovers:
    """Everything that is known once the process is gone."""

    returncode: int | None
    """Negative: killed by that signal."""
    result: ChildResult | None
    result_unreadable: str = ""
    timed_out_after: float | None = None
    given_up_after: float | None = None
    """Seconds without a step, where it was seen that there would be none."""
    interrupted: bool = False
    kernel_killed_for_memory: bool = False
    ours: tuple[str, ...] = ()
    """Folders of the trial, which no sentence needs to name."""
    examined: bool = False
    """Watched closely, which may itself be what a script fails of."""


def state_of(left: Leftovers) -> tuple[State, str]:
    if left.interrupted:
        return State.INTERRUPTED, "The run was interrupted."
    if left.result is not None and left.result.ended is Ended.ENOUGH:
        return _measured(left.result)
    if left.given_up_after is not None:
        seconds = f"{left.given_up_after:.0f} seconds without a training step"
        return State.NOTHING_MEASURED, f"The script was stopped after {seconds}."
    if left.timed_out_after is not None:
        seconds = f"{left.timed_out_after:.0f}"
        return State.TIMED_OUT, f"The script was stopped after its limit of {seconds} seconds."
    if left.returncode is not None and left.returncode < 0:
        return _killed(left)
    if left.result_unreadable:
        return State.CRASHED, f"The run left a result that is not whole: {left.result_unreadable}"
    if left.result is None:
        return State.CRASHED, "The run's process ended without leaving a result."
    if left.returncode or (left.returncode is None and left.result.failure is not None):
        return _failed(left.result, left)
    return _measured(left.result)


def steps_seen(result: ChildResult | None) -> int:
    """Roughly, for a sentence; the timeline knows exactly."""
    kinds = result.measurement.events.kind if result else []
    return kinds.count(Kind.OPTIMIZER_END) or kinds.count(Kind.BACKWARD_END)


def steps_made(measurement: Measurement) -> int:
    """Of a script that failed: with an optimizer at hand, a backward pass alone is no step."""
    kinds = measurement.events.kind
    by_hand = not measurement.inventory.optimizer_built
    return kinds.count(Kind.BACKWARD_END if by_hand else Kind.OPTIMIZER_END)


def _measured(result: ChildResult) -> tuple[State, str]:
    if steps_seen(result) < 2:
        return State.NOTHING_MEASURED, _why_nothing(result)
    for receipt in result.receipts:
        if not receipt.applied:
            what = f"The optimisation {receipt.lever} did not take effect"
            return State.NOT_APPLIED, f"{what}: {receipt.reason}."
    return State.COMPLETE, ""


def _why_nothing(result: ChildResult) -> str:
    if not result.measurement.software.torch:
        return "The script ended without importing torch."
    if steps_seen(result) == 1:
        return "The script ended after a single training step: there is nothing to time."
    return "The script ended without a training step: no optimizer stepped, no backward pass ran."


def _killed(left: Leftovers) -> tuple[State, str]:
    name = signal_name(left.returncode)
    if left.kernel_killed_for_memory:
        return State.OUT_OF_MEMORY, "The kernel killed the script: the host has no memory left."
    return State.CRASHED, f"The script was killed by {name}."


def _failed(result: ChildResult, left: Leftovers) -> tuple[State, str]:
    steps = steps_made(result.measurement)
    some = "1 step" if steps == 1 else f"{steps} steps"
    when = f"after {some}" if steps else "before its first training step"
    failure = result.failure
    if failure is None:
        return State.CRASHED, f"The script ended with exit status {left.returncode} {when}."
    if failure.remedy:
        return State.CRASHED, failure.message
    if failure.is_device_memory:
        return State.OUT_OF_MEMORY, f"The GPU's memory was exhausted {when}."
    if failure.is_host_memory:
        return State.OUT_OF_MEMORY, f"The host's memory was exhausted {when}."
    if failure.is_syntax:
        return State.CRASHED, "The script is not valid Python for its interpreter."
    when = f"while it was examined, {when}" if left.examined else when
    return State.CRASHED, f"The script failed {when}: {said(failure, left.ours)}."


def signal_name(returncode: int | None) -> str:
    number = -(returncode or 0)
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
