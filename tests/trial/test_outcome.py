from __future__ import annotations

import signal

import pytest

from hotloop.errors import (
    DeviceOutOfMemory,
    FailedBeforeFirstStep,
    FailedInTraining,
    HostOutOfMemory,
    HotloopError,
    KilledBySignal,
    NothingMeasured,
    ResultUnreadable,
    ScriptSyntaxError,
    TimedOut,
)
from hotloop.measurement import Inventory, Measurement, Software
from hotloop.trial.failures import error_for
from hotloop.trial.outcome import Leftovers, signal_name, state_of
from hotloop.trial.result import ChildResult, Ended, Failure
from hotloop.trial.trial import State
from tests.builders import Log, job, measurement, training, trial

TRAINED = measurement(training(8).events)
ONE_STEP = measurement(training(1).events)
NO_STEP = measurement(Log().data(1, 8).forward(1).events)
ONE_PASS = measurement(Log().forward(1).backward(1).events)
BY_HAND = measurement(
    Log().forward(1).backward(1).forward(1).backward(1).events, inventory=Inventory()
)
NO_TORCH = Measurement(software=Software("3.11.9"))


def ended(
    seen: Measurement = TRAINED, failure: Failure | None = None, how: Ended = Ended.SCRIPT
) -> ChildResult:
    return ChildResult(how, failure, seen)


VALUE_ERROR = Failure("ValueError", "no")
GPU_FULL = Failure("OutOfMemoryError", "CUDA out of memory", is_device_memory=True)
HOST_FULL = Failure("MemoryError", "", is_host_memory=True)
SYNTAX = Failure("SyntaxError", "invalid syntax", is_syntax=True)

CASES: list[tuple[Leftovers, State, str, type[HotloopError] | None]] = [
    (Leftovers(0, ended()), State.COMPLETE, "", None),
    (Leftovers(0, ended(how=Ended.ENOUGH)), State.COMPLETE, "", None),
    (Leftovers(0, ended(BY_HAND)), State.COMPLETE, "", None),
    (Leftovers(None, ended(how=Ended.ENOUGH)), State.COMPLETE, "", None),
    (Leftovers(None, ended()), State.COMPLETE, "", None),
    (Leftovers(-9, ended(how=Ended.ENOUGH)), State.COMPLETE, "", None),
    (Leftovers(None, ended(how=Ended.ENOUGH), timed_out_after=9), State.COMPLETE, "", None),
    (
        Leftovers(None, None, given_up_after=31.4),
        State.NOTHING_MEASURED,
        "after 31 seconds without a training step",
        NothingMeasured,
    ),
    (
        Leftovers(1, ended(NO_STEP, VALUE_ERROR), examined=True),
        State.CRASHED,
        "failed while it was examined, before its first training step: ValueError: no.",
        FailedBeforeFirstStep,
    ),
    (Leftovers(None, None, interrupted=True), State.INTERRUPTED, "interrupted", None),
    (Leftovers(0, ended(), interrupted=True), State.INTERRUPTED, "interrupted", None),
    (
        Leftovers(None, None, timed_out_after=90.0),
        State.TIMED_OUT,
        "its limit of 90 seconds",
        TimedOut,
    ),
    (Leftovers(-15, ended(), timed_out_after=9.0), State.TIMED_OUT, "limit of 9", TimedOut),
    (
        Leftovers(-9, None, kernel_killed_for_memory=True),
        State.OUT_OF_MEMORY,
        "no memory left",
        HostOutOfMemory,
    ),
    (Leftovers(-9, None), State.CRASHED, "killed by SIGKILL", KilledBySignal),
    (Leftovers(-11, ended(NO_STEP)), State.CRASHED, "killed by SIGSEGV", KilledBySignal),
    (Leftovers(0, None, "cut off."), State.CRASHED, "not whole: cut off.", ResultUnreadable),
    (Leftovers(0, None), State.CRASHED, "without leaving a result", ResultUnreadable),
    (Leftovers(1, None), State.CRASHED, "without leaving a result", ResultUnreadable),
    (
        Leftovers(1, ended(failure=GPU_FULL)),
        State.OUT_OF_MEMORY,
        "GPU's memory was exhausted after 8 steps",
        DeviceOutOfMemory,
    ),
    (
        Leftovers(1, ended(NO_STEP, HOST_FULL)),
        State.OUT_OF_MEMORY,
        "host's memory was exhausted before its first training step",
        HostOutOfMemory,
    ),
    (Leftovers(1, ended(NO_TORCH, SYNTAX)), State.CRASHED, "not valid Python", ScriptSyntaxError),
    (
        Leftovers(1, ended(NO_STEP, VALUE_ERROR)),
        State.CRASHED,
        "failed before its first training step: ValueError: no.",
        FailedBeforeFirstStep,
    ),
    (
        Leftovers(1, ended(ONE_PASS, VALUE_ERROR)),
        State.CRASHED,
        "failed before its first training step: ValueError: no.",
        FailedBeforeFirstStep,
    ),
    (
        Leftovers(1, ended(failure=VALUE_ERROR)),
        State.CRASHED,
        "failed after 8 steps: ValueError: no.",
        FailedInTraining,
    ),
    (
        Leftovers(1, ended(BY_HAND, VALUE_ERROR)),
        State.CRASHED,
        "failed after 2 steps: ValueError: no.",
        FailedInTraining,
    ),
    (
        Leftovers(3, ended(NO_STEP)),
        State.CRASHED,
        "exit status 3 before its first",
        FailedBeforeFirstStep,
    ),
    (Leftovers(3, ended()), State.CRASHED, "exit status 3 after 8 steps", FailedInTraining),
    (
        # It left its result, and hung on its way out until we ended it.
        Leftovers(None, ended(failure=VALUE_ERROR)),
        State.CRASHED,
        "failed after 8 steps: ValueError: no.",
        FailedInTraining,
    ),
    (
        Leftovers(0, ended(NO_TORCH)),
        State.NOTHING_MEASURED,
        "without importing torch",
        NothingMeasured,
    ),
    (
        Leftovers(0, ended(NO_STEP)),
        State.NOTHING_MEASURED,
        "without a training step",
        NothingMeasured,
    ),
    (
        Leftovers(0, ended(ONE_STEP)),
        State.NOTHING_MEASURED,
        "a single training step",
        NothingMeasured,
    ),
]


@pytest.mark.parametrize(("left", "state", "says", "kind"), CASES)
def test_every_end_has_a_state_a_reason_and_an_error(
    left: Leftovers, state: State, says: str, kind: type[HotloopError] | None
) -> None:
    found, reason = state_of(left)
    assert found is state
    assert says in reason
    assert bool(reason) == (state is not State.COMPLETE)
    killed = left.returncode is not None and left.returncode < 0
    one = trial(
        state=found,
        reason=reason,
        exit_status=left.returncode,
        signal=signal_name(left.returncode) if killed else None,
        failure=left.result.failure if left.result else None,
        measurement=left.result.measurement if left.result else None,
    )
    error = error_for(one, job(), "")
    assert type(error) is (kind or type(None))
    if error is not None:
        assert error.sentence == reason
        assert error.remedy


def test_every_state_but_one_can_be_reached() -> None:
    """A trial is `not_applied` by its plan's receipts, which are not a matter of its process."""
    assert {state for _, state, _, _ in CASES} == set(State) - {State.NOT_APPLIED}


def test_different_ends_have_different_exit_codes() -> None:
    kinds = {kind for _, _, _, kind in CASES if kind is not None}
    assert len({kind.exit_code for kind in kinds}) == len(kinds) == 9


@pytest.mark.parametrize(
    ("returncode", "name"),
    [(-signal.SIGABRT, "SIGABRT"), (-63, "signal 63"), (-40, "signal 40")],
)
def test_signals_have_names(returncode: int, name: str) -> None:
    assert signal_name(returncode) == name
