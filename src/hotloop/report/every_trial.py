"""Every trial of a study, with what it came to and what shows that it did, as plain rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hotloop import units
from hotloop.figures import step_times
from hotloop.levers.base import Receipt
from hotloop.report.depth_rows import where
from hotloop.report.plan_words import plan_words
from hotloop.report.process_rows import TIMED as PROFILED
from hotloop.report.told_rows import told
from hotloop.report.trial_rows import TIMED, TrialRow
from hotloop.study import Study
from hotloop.trial.stacks import users_own
from hotloop.trial.terminal import harmless
from hotloop.trial.trial import State, Trial

STATES = {
    State.COMPLETE: "complete",
    State.OUT_OF_MEMORY: "out of memory",
    State.CRASHED: "crashed",
    State.TIMED_OUT: "timed out",
    State.INTERRUPTED: "interrupted",
    State.NOT_APPLIED: "took no effect",
    State.NOTHING_MEASURED: "nothing measured",
}
PURPOSES = {"": "timed", "repeat": "timed again", "look": "looked into"}


@dataclass(frozen=True)
class Spread:
    """Seconds of a step in this process: nine tenths of the steps lie between low and high."""

    mean: float
    low: float
    high: float
    steps: int


@dataclass(frozen=True)
class TrialDetail:
    number: int
    words: str
    purpose: str
    state: str
    failed: bool
    step: Spread | None
    """None where its speed was not the point, or was not measured."""
    ratio: str
    """Against the job as it is, as it ran last."""
    outcome: str
    reason: str
    seconds: float
    memory: int | None
    receipts: tuple[tuple[str, str], ...]
    """Optimisation, and the evidence that it took effect; or why it did not."""
    log: str
    """A file, relative to the study. Empty where none was kept."""
    printed: str
    """The end of it. Empty where it is not at hand, or the script printed nothing."""


def rows(study: Study, logs: Mapping[str, str]) -> tuple[TrialDetail, ...]:
    """`logs`: the end of what scripts printed, by the name that a trial knows it under."""
    pairs = zip(study.trials, told(study), strict=True)
    return tuple(_detail(trial, row, logs, study.job.cwd) for trial, row in pairs)


def receipt_words(receipt: Receipt) -> str:
    if not receipt.applied:
        return f"did not take effect: {receipt.reason}"
    evidence = (f"{name.replace('_', ' ')} {value}" for name, value in receipt.evidence.items())
    return ", ".join(evidence) or "took effect"


def _detail(trial: Trial, row: TrialRow, logs: Mapping[str, str], home: str) -> TrialDetail:
    return TrialDetail(
        number=trial.number,
        words=row.words if _is_of_search(trial) else plan_words(trial.plan),
        purpose=PURPOSES.get(trial.purpose, trial.purpose),
        state=STATES[trial.state],
        failed=trial.state is not State.COMPLETE,
        step=_spread(trial),
        ratio=row.ratio,
        outcome=row.outcome,
        reason=_reason(trial, row, home),
        seconds=trial.seconds,
        memory=trial.measurement.memory.peak if trial.measurement else None,
        receipts=tuple((one.lever, receipt_words(one)) for one in trial.receipts),
        log=trial.log,
        printed=harmless(logs.get(trial.log, "")),
    )


def _is_of_search(trial: Trial) -> bool:
    return trial.purpose not in PROFILED and trial.deep is None


def _spread(trial: Trial) -> Spread | None:
    timed = trial.purpose in (*PROFILED, *TIMED) and trial.state is State.COMPLETE
    found = step_times(trial.measurement) if timed and trial.measurement else None
    if found is None:
        return None
    return Spread(found.step.mean, found.p05, found.step.p95, found.step.count)


def _reason(trial: Trial, told: TrialRow, home: str) -> str:
    if trial.state is State.COMPLETE:
        return told.reason
    at = users_own(trial.hung_at, home)
    if at is None:
        return trial.reason
    source = f": {at.source}" if at.source else ""
    return f"{trial.reason} It was at {where(at.file, at.line, home)}{source}"


def interval_words(spread: Spread) -> str:
    return f"{units.seconds(spread.low)} to {units.seconds(spread.high)}"
