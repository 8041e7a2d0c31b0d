"""What a search came to, as numbers. Pure: everything here is computed from the study."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hotloop.figures import PhaseShare, figures, step_times
from hotloop.plan import Plan
from hotloop.report.plan_words import key
from hotloop.report.trial_rows import TIMED
from hotloop.search.compare import DISTURBED, Comparison
from hotloop.search.ladder import climbed
from hotloop.study import Found, Options, Study, Unused
from hotloop.trial.trial import State, Trial


@dataclass(frozen=True)
class Pace:
    """How a plan runs: means over the processes that were timed under it."""

    step_seconds: float
    """For as many samples as a step of the job as it is has."""
    epoch_seconds: float | None
    memory: int | None
    """Peak bytes, on the GPU where there is one."""
    one_off_seconds: float
    """At the most: later processes find what the first has compiled."""
    phases: tuple[PhaseShare, ...]
    gpu_phases: tuple[PhaseShare, ...]
    """On the GPU's own clock. Empty: there is none, or nobody read it."""
    screened: bool
    """Measured in one process alone, which proves nothing."""
    middle_trial: int
    """The number of the one that phases are of."""
    middle_step: float
    """Seconds that a step took there."""
    counts_children: bool = False
    """Whether the memory is also that of child processes."""


@dataclass(frozen=True)
class Rung:
    """An accepted optimisation, on top of those before it."""

    lever: str
    setting: dict[str, Any]
    gain: Comparison | None
    """Of its own: the plan against the plan without it."""
    pace: Pace | None
    """Of the plan up to here; None where that was never measured."""


@dataclass(frozen=True)
class Payback:
    """When the time that the search took has been won back."""

    steps: int
    seconds: float
    """Of training under the plan."""


@dataclass(frozen=True)
class SearchFigures:
    before: Pace | None
    after: Pace | None
    """None without a plan."""
    ladder: tuple[Rung, ...]
    runs: int
    seconds: float
    """All trials together."""
    unused: Unused
    """Of these: what the search does not rest on."""
    payback: Payback | None


def search_figures(study: Study) -> SearchFigures:
    found = study.found or Found(Options())
    timed = [each for each in map(_timed, study.trials) if each is not None]
    pairs = found.proof.comparison.pairs if found.proof else ()
    by_speed = pairs if found.options.objective == "speed" else ()
    before = _as_proven(_pace(timed, Plan()), [pair.baseline for pair in by_speed])
    after = _pace(timed, found.plan) if found.plan else None
    after = _as_proven(after, [pair.candidate for pair in by_speed])
    seconds = sum(trial.cost for trial in study.trials) + study.unused.seconds
    return SearchFigures(
        before=before,
        after=after,
        ladder=_ladder(timed, found, after) if found.plan else (),
        runs=len(study.trials) + study.unused.runs,
        seconds=seconds,
        unused=study.unused,
        # What is won in memory pays back no time, whatever steps take.
        payback=None if found.options.objective == "memory" else _payback(seconds, before, after),
    )


@dataclass(frozen=True)
class _Timed:
    plan: frozenset[str]
    proof: bool
    pace: Pace
    """Without its phases, which are asked of few trials and take long."""
    trial: Trial


def _timed(trial: Trial) -> _Timed | None:
    complete = trial.state is State.COMPLETE and trial.purpose in TIMED
    if not complete or trial.measurement is None:
        return None
    found = step_times(trial.measurement)
    if found is None:
        return None
    pace = Pace(
        found.step.mean / trial.own_batches,
        found.epoch_seconds,
        trial.measurement.memory.peak,
        found.one_off_seconds + sum(receipt.once_seconds for receipt in trial.receipts),
        phases=(),
        gpu_phases=(),
        screened=True,
        middle_trial=trial.number,
        middle_step=found.step.mean / trial.own_batches,
        counts_children=trial.measurement.memory.counts_children,
    )
    return _Timed(key(trial.plan), trial.purpose == "proof", pace, trial)


def middle_trial(study: Study, plan: Plan) -> Trial | None:
    """Of the processes that were timed under this plan, the one that stands for them."""
    chosen = _chosen([each for each in map(_timed, study.trials) if each is not None], plan)
    return _middle(chosen).trial if chosen else None


def _chosen(timed: Sequence[_Timed], plan: Plan) -> list[_Timed]:
    """Those of the proof, which ran side by side, wherever it has measured this plan.

    Of the job as it is, those that something else slowed down count here as little as in a proof.
    """
    wanted = key(plan)
    of_plan = [each for each in timed if each.plan == wanted]
    chosen = [each for each in of_plan if each.proof] or of_plan
    if plan.levers or not chosen:
        return chosen
    most = DISTURBED * _middle(chosen).pace.step_seconds
    return [each for each in chosen if each.pace.step_seconds <= most]


def _middle(chosen: Sequence[_Timed]) -> _Timed:
    """Of two the quicker one: the other may have been disturbed."""
    return sorted(chosen, key=lambda each: each.pace.step_seconds)[(len(chosen) - 1) // 2]


def _pace(timed: Sequence[_Timed], plan: Plan) -> Pace | None:
    chosen = _chosen(timed, plan)
    if not chosen:
        return None
    middle = _middle(chosen)
    measured = middle.trial.measurement
    found = figures(measured) if measured else None
    wanted, paces = key(plan), [each.pace for each in chosen]
    epochs = [pace.epoch_seconds for pace in paces if pace.epoch_seconds is not None]
    peaks = [pace.memory for pace in paces if pace.memory is not None]
    return Pace(
        # The mean that pairs are compared by.
        step_seconds=statistics.geometric_mean(pace.step_seconds for pace in paces),
        epoch_seconds=statistics.geometric_mean(epochs) if epochs else None,
        memory=round(statistics.median(peaks)) if peaks else None,
        one_off_seconds=max(each.pace.one_off_seconds for each in timed if each.plan == wanted),
        phases=found.phases if found else (),
        gpu_phases=found.gpu_phases if found else (),
        screened=not chosen[0].proof,
        middle_trial=middle.trial.number,
        middle_step=middle.pace.step_seconds,
        counts_children=any(pace.counts_children for pace in paces),
    )


def _as_proven(pace: Pace | None, seconds: Sequence[float]) -> Pace | None:
    """By the pairs of the proof alone: the steps then stand in the ratio that is claimed."""
    if pace is None or not seconds:
        return pace
    return replace(pace, step_seconds=statistics.geometric_mean(seconds))


def _ladder(timed: Sequence[_Timed], found: Found, whole: Pace | None) -> tuple[Rung, ...]:
    proof, plan = found.proof, found.plan or Plan()
    own = {one.lever: one.comparison for one in proof.contributions} if proof else {}
    if proof and len(plan.levers) == 1:
        own.setdefault(plan.levers[0].lever, proof.comparison)
    order = climbed(plan, found.climb)
    paces = [_pace(timed, Plan(order[:count])) for count in range(1, len(order))]
    return tuple(
        Rung(chosen.lever, chosen.setting, own.get(chosen.lever), pace)
        for chosen, pace in zip(order, [*paces, whole], strict=True)
    )


def _payback(seconds: float, before: Pace | None, after: Pace | None) -> Payback | None:
    if before is None or after is None or after.step_seconds >= before.step_seconds:
        return None
    won = before.step_seconds - after.step_seconds
    steps = math.ceil((seconds + after.one_off_seconds) / won)
    return Payback(steps, steps * after.step_seconds)
