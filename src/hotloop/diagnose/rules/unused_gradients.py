"""Gradients are computed that no optimizer uses: a backbone that nobody told not to learn."""

from __future__ import annotations

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.call_sites import distinct
from hotloop.diagnose.sightings import innermost
from hotloop.diagnose.wording import percent, times
from hotloop.inspection import Frame
from hotloop.timeline import Phase

BUILT = "an optimizer"


def unused_gradients(case: Case) -> Finding | None:
    unused = case.inspection.unused_gradients if case.inspection else None
    if unused is None:
        return None
    clock = case.figures.gpu_phases or case.figures.phases
    backward = sum(one.share for one in clock if one.phase == Phase.BACKWARD)
    share = backward * unused.of_backward
    takes = f", for {percent(share)} of a step" if share >= LEAST_SHARE else ""
    return Finding(
        rule="unused_gradients",
        title=f"Gradients of {times(unused.tensors, 'tensor')} are computed and never used{takes}",
        share=share,
        remedy="Tell what no optimizer holds not to learn: parameter.requires_grad_(False).",
        effort=Effort.LINES,
        evidence=(
            f"{unused.elements:,} numbers get gradients, are in no optimizer, and did not change",
            f"{percent(unused.of_backward)} of the backward pass comes after the last gradient "
            "that is used",
        ),
        places=_places(case),
        is_limit=share >= LEAST_SHARE,
        takes=share,
    )


def _places(case: Case) -> tuple[Frame, ...]:
    """Where optimizers were built: what they were given, and what not."""
    calls = case.inspection.calls if case.inspection else []
    lines = (innermost(call.stack) for call in calls if call.what == BUILT)
    return distinct(line for line in lines if line is not None)
