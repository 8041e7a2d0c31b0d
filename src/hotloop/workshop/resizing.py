"""Another batch size for a job that may have one: the curve is measured, and the fastest taken."""

from __future__ import annotations

from hotloop.figures import figures, training_loader
from hotloop.plan import LeverSetting, Plan
from hotloop.search.batch_sizes import Curve, SizePoint, explore
from hotloop.search.climb import BudgetSpent
from hotloop.search.compare import LEAST_GAIN
from hotloop.search.interactions import combined
from hotloop.trial.trial import State, Trial
from hotloop.workshop.workshop import Workshop

BATCH = "batch_size"
SCREEN = "screen"
LEAST_STEPS = 3
"""Timed, of a size that counts: one alone may be anything."""


def resize(plan: Plan, baseline: Trial, workshop: Workshop) -> tuple[Curve, Plan]:
    """The sizes that were run on top of `plan`, and the plan with the fastest of them."""
    assert baseline.measurement is not None and baseline.measurement.inventory.loop is not None
    own = baseline.measurement.inventory.loop.batch_size
    loader = training_loader(baseline.measurement)
    start = point(_last(plan, workshop) or baseline, own)
    spent = False

    def run(size: int) -> SizePoint:
        nonlocal spent
        if spent:
            return SizePoint(size, None, None, "There was no time left for it.")
        sized = combined(plan, (LeverSetting(BATCH, {"size": size}),))
        try:
            workshop.measure(sized, SCREEN)
        except BudgetSpent:
            spent = True
            return SizePoint(size, None, None, "There was no time left for it.")
        trial = _last(sized, workshop)
        assert trial is not None
        return point(trial, size)

    curve = explore(start, run, loader.samples if loader else None)
    # A size for which there was no time was not run, and is no point of the curve.
    curve = Curve(tuple(p for p in curve.points if "no time left" not in p.reason))
    best = curve.best
    if best is None or best.size == own or not _is_gain(best, start):
        return curve, plan
    return curve, combined(plan, (LeverSetting(BATCH, {"size": best.size}),))


def point(trial: Trial, size: int) -> SizePoint:
    """Only a trial that came to its end has a rate."""
    found = figures(trial.measurement) if trial.measurement else None
    if trial.state is not State.COMPLETE or trial.measurement is None or found is None:
        return SizePoint(size, None, None, trial.reason or "Too few steps were seen.")
    if found.step.count < LEAST_STEPS:
        return SizePoint(size, None, None, "The job ends before enough of its steps are timed.")
    return SizePoint(size, size / found.step.mean, trial.measurement.memory.peak)


def _is_gain(best: SizePoint, start: SizePoint) -> bool:
    return (best.rate or 0.0) >= (start.rate or 0.0) * (1 + LEAST_GAIN)


def _last(plan: Plan, workshop: Workshop) -> Trial | None:
    """The newest timed trial of this plan."""
    timed = [trial for trial in workshop.record.trials if trial.purpose == SCREEN]
    return next((t for t in reversed(timed) if t.plan.levers == plan.levers), None)
