"""Passes that nothing differentiates keep everything a backward pass would need."""

from __future__ import annotations

import statistics
from bisect import bisect_left

from hotloop import timeline
from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.call_sites import dearest_calls, distinct
from hotloop.diagnose.loading import FAR_OFF
from hotloop.diagnose.steady import spans, step_ends
from hotloop.diagnose.wording import percent, seconds
from hotloop.inspection import Pass
from hotloop.measurement import Kind

SAVED = 0.25
"""Of such a pass, without gradients. Between nothing, where large operators do all the work, and
a third, where there are many small ones or layers that have a path of their own for inference."""
FEW = 0.5
"""Of the steps. What is called in more of them, in training mode, belongs to the training: a GAN's
generator, whose pictures its critic is shown."""


def evaluation_with_gradients(case: Case) -> Finding | None:
    seen = _seen(case)
    steps = timeline.steps(case.measurement.events)[1:]
    spent, count = _beyond_usual(case)
    whole = sum(step.seconds + step.evaluation for step in steps)
    if not seen or not count or not whole:
        return None
    spent = min(spent, _looked(case, seen) * whole)
    share = spent / whole * SAVED
    trains = all(one.training for one in seen)
    what = "Evaluation" if not trains else "What nothing differentiates"
    mode = "training" if trains else "evaluation"
    return Finding(
        rule="evaluation_with_gradients",
        title=f"{what} runs with gradients enabled, for {percent(spent / whole)} of the run",
        share=share,
        remedy="Evaluate under torch.no_grad() or torch.inference_mode().",
        effort=Effort.LINES,
        evidence=(
            f"{count:,} passes in {mode} mode that no backward pass followed took "
            f"{seconds(spent / count)} each",
            f"estimate: without gradients they take {percent(SAVED)} less, and far less memory",
            "the share is of the run that was timed, not of a step",
        ),
        places=distinct(dearest_calls(seen)),
        is_limit=share >= LEAST_SHARE,
    )


def _seen(case: Case) -> list[Pass]:
    """Those in evaluation mode; and if there are none, those in training mode that are seldom."""
    every = case.inspection.evaluations_with_gradients if case.inspection else []
    evaluated = [one for one in every if not one.training]
    if evaluated or case.looked is None:
        return evaluated
    events = case.looked.events
    ends = step_ends(events)
    met = {bisect_left(ends, one.time_ns) for one in every}
    return every if len(met) <= FEW * len(ends) else []


def _looked(case: Case, seen: list[Pass]) -> float:
    """The most that they can be of the run: of the one that was looked into. All: not known."""
    if case.looked is None or not all(one.training for one in seen):
        return 1.0
    times_ns = case.looked.events.time_ns
    ran = (times_ns[-1] - times_ns[0]) / 1e9
    return min(FAR_OFF * sum(one.seconds for one in seen) / ran, 1.0) if ran else 1.0


def _beyond_usual(case: Case) -> tuple[float, int]:
    """Seconds and number of the forward passes that only some steps have more than the others."""
    events = case.measurement.events
    ends = step_ends(events)
    took: dict[int, list[float]] = {number: [] for number in range(1, len(ends))}
    for span in spans(events, Kind.FORWARD_BEGIN):
        step = bisect_left(ends, span.end_ns)
        if step in took:
            took[step].append(span.seconds)
    if not took:
        return 0.0, 0
    usual = statistics.median_low(map(len, took.values()))
    as_usual = statistics.median(sum(one) for one in took.values() if len(one) <= usual)
    beyond = [(sum(one) - as_usual, len(one) - usual) for one in took.values() if len(one) > usual]
    return sum(max(one, 0.0) for one, _ in beyond), sum(n for _, n in beyond)
