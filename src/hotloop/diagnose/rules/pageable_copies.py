"""Batches are copied to the GPU from ordinary memory, and the CPU waits for each copy.

Such a copy goes through a buffer of the driver's, slowly, and begins when the GPU has done all it
had. From pinned memory it is queued like a kernel: the CPU goes on, and has more ready in time.
"""

from __future__ import annotations

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.gpu_time import Idle, gpu_time
from hotloop.diagnose.heavy_lines import by_copies, heavy_lines
from hotloop.diagnose.kernel_kinds import Work
from hotloop.diagnose.kernel_times import kernels, seconds_a_step
from hotloop.diagnose.steady import Span, steady_spans
from hotloop.diagnose.wording import percent, seconds, size
from hotloop.measurement import Kind

FAST = 0.6
"""Of the pinned rate. Copies at that rate come from pinned memory, whoever pinned it."""
USUAL_PINNED = 20e9
"""Bytes a second over PCIe 4, where the roof does not say."""


def pageable_copies(case: Case) -> Finding | None:
    copies = steady_spans(case, Kind.COPY_BEGIN) if case.on_gpu else []
    moved = sum(max(copy.n, 0) for copy in copies) / case.figures.step.count
    if not moved or _are_pinned(case, copies, moved):
        return None
    share = _won(case, copies, moved)
    if share < LEAST_SHARE:
        return None
    by_loader = case.loader is not None and not case.loader.pinned
    levers = ("pin_memory", "device_prefetch") if by_loader else ()
    return Finding(
        rule="pageable_copies",
        title=f"Copies from pageable memory hold up {percent(case.share('copy'))} of a step",
        share=share,
        remedy="Load batches into pinned memory (pin_memory=True) and copy with non_blocking=True.",
        effort=Effort.SETTING if levers else Effort.LINES,
        evidence=_evidence(case, copies, moved),
        places=heavy_lines(case, by_copies),
        levers=levers,
    )


def _are_pinned(case: Case, copies: list[Span], moved: float) -> bool:
    """By what the GPU's record says, or else by how the script asks for them."""
    inward = [kernel for kernel in kernels(case) if kernel.work is Work.COPY_IN]
    if inward:
        plain = seconds_a_step(case, inward, lambda kernel: "Pageable" in kernel.name)
        return plain < seconds_a_step(case, inward) / 2
    waiting = all(copy.key for copy in copies)
    pinned = case.roof.host_to_device_pinned if case.roof else None
    took = sum(copy.seconds for copy in copies) / case.figures.step.count
    fast = pinned is not None and moved / took > FAST * pinned if took else True
    return waiting or fast or bool(case.loader and case.loader.pinned)


def _won(case: Case, copies: list[Span], moved: float) -> float:
    """What the CPU no longer waits, as far as the GPU then has no less to do."""
    step = case.figures.step.mean
    waited = sum(copy.seconds for copy in copies) / case.figures.step.count
    queued = moved / _rate(case, pinned=True)
    by_cpu = waited - _pinning(case, moved)
    gpu = gpu_time(case)
    if gpu is None:  # without its record: the copies alone, and nothing of what they hold up
        return max(min(waited, moved / _rate(case, pinned=False)) - queued, 0.0) / step
    found = kernels(case)
    copying = seconds_a_step(case, found, lambda kernel: kernel.work is Work.COPY_IN)
    idle = (gpu.idle_share - gpu.share(Idle.SYNC)) * step
    return max(min(by_cpu, idle + copying - queued), 0.0) / step


def _pinning(case: Case, moved: float) -> float:
    """Without workers it is the training thread that puts a batch into pinned memory."""
    by_hand = case.loader is not None and case.loader.workers == 0
    return moved / _rate(case, pinned=False) if by_hand else 0.0


def _rate(case: Case, pinned: bool) -> float:
    roof = case.roof
    fast = (roof.host_to_device_pinned if roof else None) or USUAL_PINNED
    slow = (roof.host_to_device_pageable if roof else None) or fast / 3
    return fast if pinned else slow


def _evidence(case: Case, copies: list[Span], moved: float) -> tuple[str, ...]:
    took = sum(copy.seconds for copy in copies) / case.figures.step.count
    blocking = sum(not copy.key for copy in copies) / len(copies)
    roof = case.roof
    lines = [
        f"{size(moved)} a step take the CPU {seconds(took)}: {moved / took / 1e9:.1f} GB/s",
        f"{percent(blocking)} of the copies make the CPU wait",
    ]
    if roof and roof.host_to_device_pinned:
        lines.append(f"from pinned memory it could be {roof.host_to_device_pinned / 1e9:.0f} GB/s")
    if case.loader is not None and not case.loader.pinned:
        lines.append("the loader does not pin its batches")
    return tuple(lines)
