"""How long kernels took, one by one, and what it would be worth if they took less."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hotloop.diagnose.base import Case
from hotloop.diagnose.gpu_time import gpu_time
from hotloop.diagnose.kernel_kinds import Work, work
from hotloop.diagnose.spans import PAUSE_NS


@dataclass(frozen=True)
class Kernel:
    name: str
    seconds: float
    is_queued_up: bool
    """The next one followed at once: it had been waiting. Otherwise the GPU then idled, and would
    only have idled longer had this kernel been shorter."""

    @property
    def work(self) -> Work:
        return work(self.name)


def kernels(case: Case) -> list[Kernel]:
    """In the order they began. Empty where the GPU could not be looked at."""
    seen = case.inspection.kernels if case.inspection else None
    if seen is None:
        return []
    rows = sorted(zip(seen.start_ns, seen.duration_ns, seen.name, strict=True))
    starts = [start for start, _, _ in rows[1:]] + [seen.end_ns]
    return [
        Kernel(seen.names[name], duration / 1e9, following - start - duration <= PAUSE_NS)
        for (start, duration, name), following in zip(rows, starts, strict=True)
    ]


def seconds_a_step(
    case: Case, found: Iterable[Kernel], belongs: Callable[[Kernel], bool] = lambda kernel: True
) -> float:
    seen = case.inspection.kernels if case.inspection else None
    total = sum(kernel.seconds for kernel in found if belongs(kernel))
    return total / seen.steps if seen and seen.steps else 0.0


def share_won(case: Case, saved: float) -> float:
    """Of a step, if the GPU had this many seconds less to do in it.

    Not all of that is won: however short the kernels are, queueing them takes the CPU's time.
    """
    step, gpu = case.figures.step.mean, gpu_time(case)
    queueing = case.roof.launch_seconds if case.roof else None
    floor = gpu.kernels / gpu.steps * queueing if gpu and queueing else 0.0
    return max(1 - max(step - saved, floor) / step, 0.0)
