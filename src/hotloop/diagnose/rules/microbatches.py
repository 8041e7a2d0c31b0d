"""A batch is worked off in small parts, each of which pays the whole fixed cost of a pass."""

from __future__ import annotations

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.call_sites import dearest_lines, distinct
from hotloop.diagnose.gpu_time import GpuTime, gpu_time
from hotloop.diagnose.overhead import REACHED, sample_work
from hotloop.diagnose.passes import Passes, passes
from hotloop.diagnose.sightings import sightings
from hotloop.diagnose.wording import percent, seconds, times
from hotloop.stats import percentile
from hotloop.timeline import Phase

SEVERAL = 1.9
"""Passes a step, on average. A trial may end amid a step."""


def microbatches(case: Case) -> Finding | None:
    found = passes(case)
    if found is None or found.a_step < SEVERAL:
        return None
    saved, evidence = _saved(case, found)
    if saved < LEAST_SHARE:
        return None
    lines = dearest_lines(sightings(case), lambda one: one.phase == Phase.BACKWARD)
    each = times(found.samples, "sample") if found.samples else "a part of a batch"
    return Finding(
        rule="microbatches",
        title=f"A step takes {found.a_step:.0f} passes of {each} each, one after the other",
        share=saved,
        remedy="Take larger parts, as memory allows, unless state is carried between them.",
        levers=("microbatch",) if case.measurement.inventory.loop else (),
        effort=Effort.SETTING,
        evidence=(f"a pass takes {seconds(found.seconds / found.a_step)}", evidence),
        places=distinct(lines),
    )


def _saved(case: Case, found: Passes) -> tuple[float, str]:
    """Fused, the fixed cost of a pass is paid once; what its samples cost stays."""
    gpu = gpu_time(case) if case.on_gpu else None
    if gpu is not None:
        return _on_gpu(case, found, gpu)
    work, step = sample_work(case), case.figures.step.mean
    if work is None:
        return 0.0, ""
    fixed = max(found.seconds - work, 0.0)
    evidence = (
        f"{percent(fixed / found.seconds)} of that is fixed cost: the arithmetic alone would take "
        f"{seconds(work / found.a_step)} at {percent(REACHED)} of this machine's roof"
    )
    return fixed * (1 - 1 / found.a_step) / step, evidence


def _on_gpu(case: Case, found: Passes, gpu: GpuTime) -> tuple[float, str]:
    """The CPU queues each operator once instead of many times; a kernel has a least duration."""
    assert case.inspection is not None and case.inspection.kernels is not None
    least = percentile(case.inspection.kernels.duration_ns, 5) / 1e9
    once = 1 - 1 / found.a_step
    queueing = 1 - case.share(Phase.FORWARD, Phase.BACKWARD) * once
    running = gpu.busy_share - gpu.kernels * least * once / gpu.seconds
    evidence = (
        f"the GPU is busy {percent(gpu.busy_share)} of the time, with "
        f"{gpu.kernels / gpu.steps:,.0f} kernels a step of at least {seconds(least)} each"
    )
    return 1 - max(queueing, running), evidence
