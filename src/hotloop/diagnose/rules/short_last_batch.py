"""The last batch of a pass over the data is short, and its step costs nearly as much as the others.

Or more: another shape may have to be compiled, recorded or tuned for.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.call_sites import distinct, in_the_loop
from hotloop.diagnose.sightings import sightings
from hotloop.diagnose.steady import steady_steps
from hotloop.diagnose.wording import percent, seconds
from hotloop.timeline import Phase, Step

WORK = (Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)
"""Loading is left out: a pass over the data begins slowly, whatever its last batch was."""
FEWEST = 3
"""Short steps. One alone may have been slow by chance."""


def short_last_batch(case: Case) -> Finding | None:
    loader = case.loader
    if loader is None or not loader.samples or not loader.batch_size or loader.drop_last:
        return None
    steps = steady_steps(case)
    sizes = Counter(step.samples for step in steps)
    often = max(sizes.values(), default=0) / 2
    usual = max((size for size, count in sizes.items() if count >= often), default=0)
    short = [step for step in steps if 0 < step.samples < usual]
    full = [step for step in steps if step.samples == usual]
    if not loader.samples % loader.batch_size or len(short) < FEWEST or not full:
        return None
    if len({step.samples for step in short}) > 1:
        return None  # the last batch of a pass is always as short: here sizes differ by design
    share = _share(case, full, short)
    if share < LEAST_SHARE:
        return None
    took, other = (statistics.median(_work(step) for step in some) for some in (short, full))
    a_pass = math.ceil(loader.samples / usual)
    few = statistics.fmean(step.samples for step in short)
    lines = in_the_loop(sightings(case), lambda one: one.phase == Phase.FORWARD)
    return Finding(
        rule="short_last_batch",
        title=f"One step in {a_pass} is taken for {few:.3g} samples instead "
        f"of {usual}, and costs {percent(took / other)} of a full one",
        share=share,
        remedy="Drop the short batch (drop_last=True), or let the batch size divide the data.",
        effort=Effort.SETTING,
        evidence=(
            f"{loader.samples:,} samples in batches of {loader.batch_size} leave "
            f"{loader.samples % loader.batch_size}",
            f"a short step computes for {seconds(took)}, a full one for {seconds(other)}",
            "the share is counted by sample",
        ),
        places=distinct(lines),
    )


def _share(case: Case, full: list[Step], short: list[Step]) -> float:
    """Of the time a sample takes: all steps against the full ones alone."""
    loading = 1 - case.share(*WORK)
    every = [*full, *short]
    each = sum(_work(step) for step in every) / sum(step.samples for step in every)
    best = sum(_work(step) for step in full) / sum(step.samples for step in full)
    return (1 - best / each) * (1 - loading)


def _work(step: Step) -> float:
    return sum(step.phases.get(phase, 0.0) for phase in WORK)
