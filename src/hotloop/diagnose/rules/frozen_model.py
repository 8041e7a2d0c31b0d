"""Every step asks a model that does not learn, in passes without gradients. A remark.

Its results could be kept where its inputs come again: they do in a data set that is not augmented,
and do not where it is; and a target network's weights are replaced now and then. That is not known.
"""

from __future__ import annotations

from hotloop import timeline
from hotloop.diagnose.base import Case, Effort, Finding
from hotloop.diagnose.call_sites import dearest_lines, distinct, in_the_loop
from hotloop.diagnose.sightings import Sighting, sightings
from hotloop.diagnose.steady import Span, steady_spans, steady_steps
from hotloop.diagnose.wording import percent, seconds
from hotloop.measurement import Kind
from hotloop.timeline import Phase

MUCH = 0.15
"""Of a step."""


def frozen_model(case: Case) -> Finding | None:
    spans = [] if case.on_gpu else _asked(case)  # on a GPU the CPU only queues such a pass
    steps = sum(step.seconds for step in steady_steps(case))
    share = sum(span.seconds for span in spans) / steps if steps else 0.0
    if share < MUCH:
        return None
    models = case.measurement.inventory.models
    names = sorted({models[span.key].name for span in spans})
    seen = sightings(case)
    return Finding(
        rule="frozen_model",
        title=f"{percent(share)} of a step goes through a model that does not learn",
        share=0.0,
        remedy="Compute its results once and keep them, if the same inputs come again, unchanged.",
        effort=Effort.LINES,
        evidence=(
            f"{', '.join(names)}: {seconds(share * case.figures.step.mean)} a step, without "
            "gradients, and none of its parameters asks for one",
        ),
        places=distinct([*in_the_loop(seen, _is_forward), *dearest_lines(seen, _is_forward)][:1]),
        is_limit=False,
    )


def _is_forward(sighting: Sighting) -> bool:
    return sighting.phase == Phase.FORWARD


def _asked(case: Case) -> list[Span]:
    """Such passes that are part of steps, and no evaluation."""
    models = case.measurement.inventory.models
    spans = steady_spans(case, Kind.NO_GRAD_BEGIN)
    phases = timeline.phases_at(case.measurement.events, [span.begin_ns for span in spans])
    return [
        span
        for span, phase in zip(spans, phases, strict=True)
        if phase is not Phase.EVALUATION
        and span.key < len(models)
        and models[span.key].parameters
        and not models[span.key].trainable
    ]
