"""torch computes with fewer threads than there are cores, on a job that has nothing but those."""

from __future__ import annotations

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.threads import computing, places, shared
from hotloop.diagnose.wording import percent, times
from hotloop.levers.threads import PARALLEL

GAIN = 0.8
"""Of a core, what every further one adds where the machine's own figures are not known."""


def too_few_threads(case: Case) -> Finding | None:
    threads, workers = case.measurement.inventory.threads, case.loader.workers if case.loader else 0
    # Workers that prepare the next batch want their cores too.
    free = max(case.cores - workers, 1)
    if case.on_gpu or not 0 < threads < free:
        return None
    speed, how = _speed(case, free)
    now, _ = _speed(case, threads)
    large = shared(case)
    parallel = PARALLEL if large is None else min(large, PARALLEL)
    share = computing(case) * parallel * (1 - now / speed)
    if share < LEAST_SHARE:
        return None
    return Finding(
        rule="too_few_threads",
        title=f"torch computes with {times(threads, 'thread')} on {times(case.cores, 'core')}",
        share=share,
        remedy=f"Let it use {free}: torch.set_num_threads, or the variable OMP_NUM_THREADS.",
        effort=Effort.SETTING,
        evidence=(
            f"{percent(computing(case))} of a step is computing, on the CPU",
            how,
            f"assumed: {percent(parallel)} of that gets faster with threads",
        ),
        places=places(case),
        levers=("threads",),
    )


def _speed(case: Case, threads: int) -> tuple[float, str]:
    """Against one thread, and where that is known from."""
    roof = case.roof
    alone = roof.cpu_matrix_flops_one_thread if roof else None
    every = roof.cpu_matrix_flops.get("float32") if roof else None
    # A roof where more threads are no faster was measured beside something else.
    if roof and alone and every and every > alone and roof.threads and roof.threads > 1:
        each = (every / alone - 1) / (roof.threads - 1)
        how = f"products run {every / alone:.2g} times as fast on {roof.threads} threads as on one"
        return 1 + each * (threads - 1), how
    return 1 + GAIN * (threads - 1), f"assumed: every further core adds {percent(GAIN)} of one"
