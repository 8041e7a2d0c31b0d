"""The GPU spends its time moving bytes: operators that compute little read and write everything.

A chain of such kernels, fused into one, reads and writes once. So of every chain the longest kernel
is left, or what all of them compute. A reduction can end a fused kernel but nothing follows it
there, so it ends a chain too.
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.gpu_time import gpu_time
from hotloop.diagnose.heavy_lines import by_bytes, heavy_lines
from hotloop.diagnose.kernel_kinds import BY_BANDWIDTH, Work
from hotloop.diagnose.kernel_times import Kernel, kernels, seconds_a_step, share_won
from hotloop.diagnose.peaks import bandwidth, operators
from hotloop.diagnose.wording import percent, seconds, times

DOMINANT = 0.4
"""Of the GPU's busy time. With less of it, arithmetic decides."""
NEAR = 0.25
"""Of the roof's bandwidth, over the whole busy time. Kernels that reach less are too small to be
limited by it, or what they touch stays in the cache."""
COMPUTING = 0.15
"""Of the time in which a kernel moves bytes it computes, unnoticed. Fused, it does not move them,
and a long formula is limited by that. Assumed; seen of one with exponentials and sines."""
ENDS_CHAIN = frozenset({Work.REDUCTION, Work.NORMALISATION, Work.SOFTMAX})


def memory_bandwidth(case: Case) -> Finding | None:
    gpu, found = gpu_time(case), kernels(case)
    if gpu is None or not gpu.step_busy:
        return None
    moving = seconds_a_step(case, found, lambda kernel: kernel.work in BY_BANDWIDTH)
    reached = _reached(case, gpu.step_busy)
    if moving < DOMINANT * gpu.step_busy or (reached is not None and reached < NEAR):
        return None
    chains = list(_chains(found))
    saved = sum(_fused(chain) for chain in chains) / gpu.steps
    share = share_won(case, saved)
    if share < LEAST_SHARE:
        return None
    longest = max(len(chain) for chain in chains)
    return Finding(
        rule="memory_bandwidth",
        title=f"Moving bytes takes {percent(moving / gpu.step_busy)} of the GPU's time",
        share=share,
        remedy="Compile the model: chains of elementwise operators become one kernel each.",
        effort=Effort.SETTING,
        evidence=(
            f"elementwise operators, reductions and norms take {seconds(moving)} of "
            f"{seconds(gpu.step_busy)} a step on the GPU",
            f"{times(len(chains) / gpu.steps, 'chain')} of them a step, up to {longest} long; "
            f"fused, {seconds(saved)} would be saved",
            *([f"they reach {percent(reached)} of the memory's bandwidth"] if reached else []),
        ),
        places=heavy_lines(case, by_bytes),
        levers=_levers(case),
    )


def _reached(case: Case, busy: float) -> float | None:
    counted, rate = operators(case), bandwidth(case)
    if counted is None or not rate or not counted.bytes:
        return None
    return min(counted.bytes / counted.steps / busy / rate, 1.0)


def _chains(found: list[Kernel]) -> Iterator[list[Kernel]]:
    """Kernels in a row that could be one."""
    chain: list[Kernel] = []
    for kernel in found:
        if kernel.work is Work.POINTWISE or kernel.work in ENDS_CHAIN:
            chain.append(kernel)
        if chain and kernel.work is not Work.POINTWISE:
            yield chain
            chain = []
    if chain:
        yield chain


def _fused(chain: list[Kernel]) -> float:
    """Seconds less. Kernels after which the GPU idles anyway would not be missed."""
    queued = [kernel.seconds for kernel in chain if kernel.is_queued_up]
    return sum(queued) - max(*queued, COMPUTING * sum(queued)) if queued else 0.0


def _levers(case: Case) -> tuple[str, ...]:
    compiled = any(model.compiled for model in case.measurement.inventory.models)
    return () if compiled else ("compile",)
