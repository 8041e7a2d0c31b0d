"""What to tell the user when a trial of their script did not complete."""

from __future__ import annotations

import re
import shlex
from itertools import accumulate

from hotloop.errors import (
    DeviceOutOfMemory,
    FailedBeforeFirstStep,
    FailedInTraining,
    HostOutOfMemory,
    HotloopError,
    HotloopFailed,
    JobInvalid,
    KilledBySignal,
    NotApplied,
    NothingMeasured,
    ResultUnreadable,
    ScriptNotFound,
    ScriptSyntaxError,
    TimedOut,
)
from hotloop.job import ScriptJob
from hotloop.trial import stacks
from hotloop.trial.outcome import steps_made
from hotloop.trial.trial import State, Trial

_TRACEBACK = re.compile(r"^(  \+ Exception Group )?Traceback \(most recent call last\):\n", re.M)
_CHAINED = (
    "\n\nThe above exception was the direct cause of the following exception:\n\n",
    "\n\nDuring handling of the above exception, another exception occurred:\n\n",
)


def error_for(trial: Trial, job: ScriptJob, printed: str) -> HotloopError | None:
    """None for a trial that completed, and for one that the user interrupted."""
    match trial.state:
        case State.COMPLETE | State.INTERRUPTED:
            return None
        case State.NOTHING_MEASURED:
            return NothingMeasured(
                trial.reason,
                _why_in_vain(trial.hung_at) or _how_to_measure(trial),
                detail=trial.hung_at.strip() or _tail(printed),
            )
        case State.NOT_APPLIED:
            return NotApplied(trial.reason, "Take it out of the plan.")
        case State.TIMED_OUT:
            return TimedOut(
                trial.reason, _how_to_wait(trial), detail=trial.hung_at.strip() or _tail(printed)
            )
        case State.OUT_OF_MEMORY:
            return _out_of_memory(trial, job, printed)
        case _:
            return _crash(trial, job, printed)


def _how_to_measure(trial: Trial) -> str:
    if trial.measurement is not None and steps_made(trial.measurement):
        return "Let it make more steps: by its arguments, or with more data."
    return (
        "Does it train, and in its own process? Training in processes that it starts is not seen."
    )


def _how_to_wait(trial: Trial) -> str:
    longer = "Grant more time with --timeout, or look where the script was waiting."
    return _why_in_vain(trial.hung_at) or longer


def _why_in_vain(hung_at: str) -> str:
    """It would have waited for ever."""
    if stacks.waits_for_input(hung_at):
        return "The script waits for input, and nobody can type here: pipe all of it in."
    if stacks.waits_for_children(hung_at):
        return "The script waits for processes that it has started: training in those is not seen."
    return ""


def _out_of_memory(trial: Trial, job: ScriptJob, printed: str) -> HotloopError:
    detail = traceback_in(printed)
    command = shlex.join(["hotloop", "optimize", "--objective", "memory", *job.words])
    fitting = f"`{command}` looks for what makes it fit."
    another = "Otherwise try a smaller batch, and look with nvidia-smi who else holds memory."
    if trial.failure is not None and trial.failure.is_device_memory:
        return DeviceOutOfMemory(trial.reason, f"{fitting} {another}", detail=detail)
    on_gpu = trial.measurement is not None and trial.measurement.software.device != "cpu"
    fewer = "Try fewer loader workers or a smaller batch."
    return HostOutOfMemory(trial.reason, fewer if on_gpu else f"{fitting} {fewer}", detail=detail)


def _crash(trial: Trial, job: ScriptJob, printed: str) -> HotloopError:
    detail = traceback_in(printed)
    if trial.signal is not None:
        return KilledBySignal(
            trial.reason, "The script's own output may say why; it is in the log.", detail=detail
        )
    if trial.measurement is None:
        return ResultUnreadable(
            trial.reason, "Is the disk full? The script's output is in the log.", detail=detail
        )
    if job.is_module and _is_missing(job.target, printed):
        return ScriptNotFound(
            f"There is no module {job.target} for {job.python}.",
            "Check its name, and that you are in the folder it is imported from.",
        )
    if trial.failure is not None and trial.failure.remedy:
        own = detail if _TRACEBACK.search(detail) else ""
        return JobInvalid(trial.reason, trial.failure.remedy, detail=own)
    if trial.failure is not None and trial.failure.is_ours:
        return HotloopFailed(
            "hotloop itself failed inside the script's process.",
            "This is a bug of ours: please report it with the traceback above.",
            detail=detail,
        )
    if trial.failure is not None and trial.failure.is_syntax:
        return ScriptSyntaxError(trial.reason, "Correct it, or choose --python.", detail=detail)
    kind = FailedInTraining if steps_made(trial.measurement) else FailedBeforeFirstStep
    return kind(trial.reason, _how_it_fails(trial, job), detail=detail)


def _how_it_fails(trial: Trial, job: ScriptJob) -> str:
    if trial.plan.levers:
        planned = ", ".join(one.lever for one in trial.plan.levers)
        return f"It ran with {planned}: if it runs without, take that out of the plan."
    if "ModuleNotFoundError" in trial.reason:  # it may be there in the Python that the user meant
        return f"It ran with {job.python}: if the script has another Python, name it with --python."
    return "Run it as it is: it should fail the same way."


def traceback_in(printed: str) -> str:
    """The last traceback in what the script printed, with those that led to it, as Python showed
    them; else the last lines."""
    begins = [found.start() for found in _TRACEBACK.finditer(printed)]
    if not begins:
        return _tail(printed)
    begin = begins.pop()
    while begins and printed[:begin].endswith(_CHAINED):
        begin = begins.pop()
    return printed[begin:].rstrip()


def _is_missing(module: str, printed: str) -> bool:
    """Python's own words for a module, or a package above it, that is not there."""
    if f"No module named {module}" in printed:
        return True
    packages = accumulate(module.split("."), "{}.{}".format)
    return f"module specification for '{module}'" in printed and any(
        f"No module named '{package}'" in printed for package in packages
    )


def _tail(printed: str, lines: int = 12) -> str:
    return "\n".join(printed.rstrip().splitlines()[-lines:])
