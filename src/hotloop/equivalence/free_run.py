"""Does a plan learn as well as the job as it is, when both are left alone?

The losses of a few steps tell little: dropout's masks move them as much as a wrong learning rate
does. So this is a smoke test, beside what is compared exactly.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from hotloop.evidence import Evidence
from hotloop.trial.trial import Trial

SEEDS_APART = 3.0
"""How many times the distance between seeds a loss may be higher."""


def differences(candidate: Trial, reference: Trial, others: Sequence[Trial]) -> Iterator[str]:
    """`others`: the job as it is, from other seeds or with other rounding."""
    then, now = _values(reference), _values(candidate)
    if not then or not now:
        yield "no loss was seen, so there is nothing to compare"
        return
    for number, (was, became) in enumerate(zip(then, now, strict=False), start=1):
        if was is not None and became is None:
            yield f"the loss of backward pass {number} is not a number"
            return
    free = min(_free_steps(reference), _free_steps(candidate))
    due, learned = (_taken(trial, free) for trial in (reference, candidate))
    if 2 * learned < due:
        yield f"its gradient scaler skipped {free - learned} of the first {free} steps"
    yield from _worse(candidate, reference, others, min(due, learned))


def _worse(candidate: Trial, reference: Trial, others: Sequence[Trial], age: int) -> Iterator[str]:
    usual, found = _loss_at(reference, age), _loss_at(candidate, age)
    if usual is None or found is None:
        return
    seen = [_loss_at(trial, age) for trial in others]
    apart = [abs(one[0] - usual[0]) for one in seen if one is not None]
    spread = max(*apart, usual[1], 1e-6 * abs(usual[0])) if apart else usual[1]
    if found[0] > usual[0] + SEEDS_APART * spread:
        yield f"left alone its loss is {found[0]:.4g}, where other seeds lie around {usual[0]:.4g}"


def _evidence(trial: Trial) -> Evidence:
    return trial.evidence or Evidence()


def _values(trial: Trial) -> list[float | None]:
    return trial.measurement.losses.value if trial.measurement else []


def _free_steps(trial: Trial) -> int:
    """Before any was forced."""
    evidence = _evidence(trial)
    return min(evidence.forced, default=len(evidence.structure.steps))


def _taken(trial: Trial, steps: int) -> int:
    return sum(step.taken for step in _evidence(trial).structure.steps[:steps])


def _loss_at(trial: Trial, age: int) -> tuple[float, float] | None:
    """Mean loss of the later half of the first `age` steps taken, and its standard error.

    Counted by steps taken: one that its scaler held back at first has learned less, not worse.
    """
    values: list[float] = []
    taken = passes = 0
    for step in _evidence(trial).structure.steps:
        if age // 2 <= taken < age:
            seen = _values(trial)[passes : passes + step.passes]
            values += [value for value in seen if value is not None]
        taken += step.taken
        passes += step.passes
    if len(values) < 2:
        return None
    return statistics.fmean(values), statistics.stdev(values) / len(values) ** 0.5
