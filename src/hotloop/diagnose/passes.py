"""Forward and backward passes of the steady steps: how many to a step, and what they take."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hotloop.diagnose.base import Case
from hotloop.diagnose.steady import steady_spans, steady_steps
from hotloop.measurement import Events, Kind
from hotloop.timeline import Phase


@dataclass(frozen=True)
class Passes:
    a_step: float
    """Backward passes."""
    seconds: float
    """Of all forward and backward passes of a step, together."""
    samples: float
    """Of one pass. 0.0: not known."""


def passes(case: Case) -> Passes | None:
    """None where they are not parts of a batch: several models, a closure, second gradients."""
    steps = steady_steps(case)
    backward = steady_spans(case, Kind.BACKWARD_BEGIN)
    if not steps or not backward or any(span.key for span in backward):
        return None
    forward = Counter(span.key for span in steady_spans(case, Kind.FORWARD_BEGIN))
    optimizers = {span.key for span in steady_spans(case, Kind.OPTIMIZER_BEGIN)}
    alike = len(forward) == 1 and forward.total() == len(backward)
    if not alike or len(optimizers) > 1 or _repeats(case.measurement.events):
        return None
    return Passes(
        a_step=len(backward) / len(steps),
        seconds=case.share(Phase.FORWARD, Phase.BACKWARD) * case.figures.step.mean,
        samples=sum(step.samples for step in steps) / len(backward),
    )


def _repeats(events: Events) -> bool:
    """An optimizer that asks its closure again and again, as LBFGS does: on the same batch."""
    inside: int | None = None
    for kind in events.kind:
        if kind == Kind.OPTIMIZER_BEGIN:
            inside = 0
        elif kind == Kind.OPTIMIZER_END:
            inside = None
        elif kind == Kind.BACKWARD_BEGIN and inside is not None:
            inside += 1
            if inside > 1:
                return True
    return False
