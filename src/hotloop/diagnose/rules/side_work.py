"""Much of a step goes to what is no part of the training: logs, figures, copies, sleep."""

from __future__ import annotations

from collections import Counter

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.call_sites import dearest_lines, distinct, in_the_loop
from hotloop.diagnose.gpu_time import gpu_time
from hotloop.diagnose.side_jobs import Kind, beside_the_training
from hotloop.diagnose.sightings import Sighting, of_a_step, sightings
from hotloop.diagnose.wording import percent, seconds
from hotloop.timeline import STEP_PHASES

REMEDIES = {
    Kind.FIGURES: "Draw every few hundred steps, or after the training.",
    Kind.TEXT: 'Let the logger decide what becomes text: log.debug("%s", tensor); and seldom.',
    Kind.LOGGING: "Log less often, or less.",
    Kind.JSON: "Write less often, or less; add to a file instead of writing all of it again.",
    Kind.TABLES: "Write less often; add to a file instead of writing all of it again.",
    Kind.COPIES: "Copy into tensors that are kept, all at once (torch._foreach_copy_), or seldom.",
    Kind.GARBAGE: "Leave it to Python, or collect seldom.",
    Kind.SLEEP: "Wait for what is awaited, by an event or a queue, and not for a time.",
    Kind.PROFILER: "Profile a few steps, and not all of them.",
    Kind.VALUES: "Compute them seldom: every hundredth step, say; or for all tensors at once.",
    Kind.OUTSIDE: "Do it once, before the training, and keep what comes out; or on whole tensors.",
}


def side_work(case: Case) -> Finding | None:
    """That which takes most. The next one is told when this one is gone."""
    seen, kind_of = sightings(case), beside_the_training(case)
    spent: Counter[Kind] = Counter()
    for one in seen:
        if kind := kind_of(one):
            spent[kind] += one.seconds  # type: ignore[assignment]
    if not spent:
        return None
    kind = spent.most_common(1)[0][0]

    def belongs(sighting: Sighting) -> bool:
        return kind_of(sighting) is kind

    share = min(of_a_step(case, seen, belongs, STEP_PHASES), _idle(case))
    if share < LEAST_SHARE:
        return None
    return Finding(
        rule="side_work",
        title=f"{percent(share)} of a step goes to {kind.value}",
        share=share,
        remedy=REMEDIES[kind],
        effort=Effort.LINES,
        evidence=(
            f"{seconds(share * case.figures.step.mean)} a step, by how often the training thread "
            "was seen there, and at what the same calls do beside it",
        ),
        places=distinct([*dearest_lines(seen, belongs)[:2], *in_the_loop(seen, belongs)]),
        cause=kind.name.lower(),
        takes=share,
    )


def _idle(case: Case) -> float:
    """A GPU works on meanwhile, as long as there is work queued for it."""
    gpu = gpu_time(case) if case.on_gpu else None
    return 1.0 if gpu is None and not case.on_gpu else gpu.idle_share if gpu else 0.0
