"""Passes that nothing differentiates keep everything a backward pass would need."""

from __future__ import annotations

import statistics
from bisect import bisect_left
from collections import Counter

from hotloop import timeline
from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.call_sites import dearest_calls, distinct
from hotloop.diagnose.steady import spans, step_ends
from hotloop.diagnose.wording import percent, seconds
from hotloop.inspection import Frame
from hotloop.measurement import Kind
from hotloop.timeline import Phase, Step

SAVED = 0.25
"""Of such a pass, without gradients. Between nothing, where large operators do all the work, and
a third, where there are many small ones or layers that have a path of their own for inference."""


def evaluation_with_gradients(case: Case) -> Finding | None:
    seen = case.inspection.evaluations_with_gradients if case.inspection else []
    steps = timeline.steps(case.measurement.events)[1:]
    spent, count = _beyond_usual(case, steps)
    whole = sum(step.seconds + step.evaluation for step in steps)
    share = spent / whole * SAVED if whole else 0.0
    if not seen or not count:
        return None
    return Finding(
        rule="evaluation_with_gradients",
        title=f"Evaluation runs with gradients enabled, for {percent(spent / whole)} of the run",
        share=share,
        remedy="Evaluate under torch.no_grad() or torch.inference_mode().",
        effort=Effort.LINES,
        evidence=(
            f"{count:,} passes in evaluation mode that no backward pass followed took "
            f"{seconds(spent / count)} each",
            f"estimate: without gradients they take {percent(SAVED)} less, and far less memory",
            "the share is of the run that was timed, not of a step",
        ),
        places=_places(case),
        is_limit=share >= LEAST_SHARE,
    )


def _beyond_usual(case: Case, steps: list[Step]) -> tuple[float, int]:
    """Seconds and number of the forward passes that only some steps have more than the others."""
    events = case.measurement.events
    ends = step_ends(events)
    per_step = Counter(bisect_left(ends, span.end_ns) for span in spans(events, Kind.FORWARD_BEGIN))
    counts = [per_step[number] for number in range(1, len(ends))]
    if not counts:
        return 0.0, 0
    usual = statistics.median_low(counts)
    took = [step.phases.get(Phase.FORWARD, 0.0) for step in steps]
    as_usual = [one for one, n in zip(took, counts, strict=True) if n <= usual]
    beyond = [
        (one - statistics.median(as_usual), n - usual)
        for one, n in zip(took, counts, strict=True)
        if n > usual
    ]
    return sum(max(one, 0.0) for one, _ in beyond), sum(n for _, n in beyond)


def _places(case: Case) -> tuple[Frame, ...]:
    passes = case.inspection.evaluations_with_gradients if case.inspection else []
    return distinct(dearest_calls(passes))
