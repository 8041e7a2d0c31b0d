"""Steps cost about the same for a few samples as for many, and this job takes very few."""

from __future__ import annotations

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.call_sites import distinct, in_the_loop
from hotloop.diagnose.loading import loading
from hotloop.diagnose.loops import loops
from hotloop.diagnose.overhead import REACHED, sample_work
from hotloop.diagnose.passes import passes
from hotloop.diagnose.rules.microbatches import SEVERAL
from hotloop.diagnose.sightings import sightings
from hotloop.diagnose.wording import percent, seconds, times
from hotloop.stats import percentile
from hotloop.timeline import Phase

TINY = 8
"""Samples a step."""
USUAL = 64
"""Samples a step, as most jobs of small models take: what the gain is reckoned for."""
FEW_ELEMENTS = 8_192
"""Of a typical operator: on more of them its time depends on how many they are."""
BY_SAMPLE = (Phase.DATA, Phase.COPY)
OVERHEAD = 0.8
"""Of the passes. Below, larger batches win too little to change a training for."""


def tiny_batch(case: Case) -> Finding | None:
    found, work = passes(case), sample_work(case)
    if found is None or work is None or not 0 < found.samples <= TINY or found.a_step >= SEVERAL:
        return None
    fixed = 1 - work / found.seconds
    if loops(case) or _typical_elements(case) > FEW_ELEMENTS or fixed < OVERHEAD:
        return None
    growth = USUAL / found.samples
    saved = 1 - _later(case, work, growth) / growth / case.figures.step.mean
    if saved < LEAST_SHARE:
        return None
    lines = in_the_loop(sightings(case), lambda one: one.phase == Phase.FORWARD)
    return Finding(
        rule="tiny_batch",
        title=f"A step takes {seconds(found.seconds)} of passes for "
        f"{times(found.samples, 'sample')}",
        share=saved,
        remedy="Take larger batches. That changes the training, and its learning rate with it.",
        effort=Effort.SETTING,
        evidence=(
            f"{percent(fixed)} of that is fixed cost: the arithmetic alone would take "
            f"{seconds(work)} at {percent(REACHED)} of this machine's roof",
            f"the share is counted by sample, for batches of {USUAL}",
            *_loaded(case),
        ),
        places=distinct(lines),
        # On a GPU the fixed cost can be had without another training: compiled, or as a graph.
        is_limit=not case.on_gpu,
    )


def _later(case: Case, work: float, growth: float) -> float:
    """Seconds of a step with a batch so many times larger. What its samples take grows with it:
    their arithmetic, their way to the device, and loading them, which may then outlast the rest."""
    step, load = case.figures.step.mean, loading(case)
    each = work + case.share(*BY_SAMPLE) * step
    loaders = max(min(load.workers, load.cores), 1)
    return max(step + each * (growth - 1), load.work / loaders * growth)


def _loaded(case: Case) -> list[str]:
    share = case.share(*BY_SAMPLE)
    spent = seconds(share * case.figures.step.mean)
    return [f"loading and copying, {spent} a step, grow with the batch"] if share >= 0.01 else []


def _typical_elements(case: Case) -> float:
    assert case.inspection is not None and case.inspection.operators is not None
    lines = case.inspection.operators.lines
    each = [line.median_elements for line in lines for _ in range(min(line.operators, 10_000))]
    return percentile(each, 50) if each else 0.0
