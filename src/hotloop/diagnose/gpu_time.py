"""What the GPU did during the steps that were looked into: when it was busy, and why it was not."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum

from hotloop import timeline
from hotloop.diagnose.base import Case
from hotloop.inspection import Kernels
from hotloop.timeline import Phase


class Idle(StrEnum):
    """Why nothing ran on the GPU."""

    DATA = "data"
    """The CPU waited for the loader."""
    COPY = "copy"
    """The CPU was copying a batch, and could queue nothing else."""
    SYNC = "synchronisation"
    """The CPU had waited for the GPU, which was then empty, and had to be filled again."""
    LAUNCH = "launch"
    """The CPU was queueing work, more slowly than the GPU did it."""


@dataclass(frozen=True)
class GpuTime:
    steps: int
    seconds: float
    """The whole window."""
    busy: float
    idle: dict[Idle, float]
    kernels: int

    @property
    def busy_share(self) -> float:
        return self.busy / self.seconds if self.seconds else 0.0

    def share(self, why: Idle) -> float:
        return self.idle.get(why, 0.0) / self.seconds if self.seconds else 0.0


def gpu_time(case: Case) -> GpuTime | None:
    """None where the GPU could not be looked at."""
    kernels = case.inspection.kernels if case.inspection else None
    if kernels is None or not kernels.start_ns or case.looked is None:
        return None
    gaps = _gaps(kernels)
    idle = sum(end - begin for begin, end in gaps)
    whole = kernels.end_ns - kernels.begin_ns
    return GpuTime(
        steps=kernels.steps,
        seconds=whole / 1e9,
        busy=(whole - idle) / 1e9,
        idle=_reasons(case, gaps),
        kernels=len(kernels.start_ns),
    )


def _gaps(kernels: Kernels) -> list[tuple[int, int]]:
    """Times in the window at which nothing ran. Streams overlap, so ends are not in order."""
    gaps = []
    free_from = kernels.begin_ns
    for start, duration in sorted(zip(kernels.start_ns, kernels.duration_ns, strict=True)):
        if start > free_from:
            gaps.append((free_from, min(start, kernels.end_ns)))
        free_from = max(free_from, start + duration)
    if free_from < kernels.end_ns:
        gaps.append((free_from, kernels.end_ns))
    return [(begin, end) for begin, end in gaps if end > begin]


def _reasons(case: Case, gaps: list[tuple[int, int]]) -> dict[Idle, float]:
    assert case.looked is not None and case.inspection is not None
    events = case.looked.events
    phases = timeline.phases_at(events, events.time_ns)
    waits = sorted(
        time_ns + round(seconds * 1e9)
        for wait in case.inspection.synchronisations
        for time_ns, seconds in zip(wait.time_ns, wait.seconds, strict=True)
    )
    idle: dict[Idle, float] = defaultdict(float)
    for begin, end in gaps:
        for why, seconds in _split(events.time_ns, phases, waits, begin, end).items():
            idle[why] += seconds
    return dict(idle)


def _split(
    times: list[int], phases: list[Phase], waits: list[int], begin: int, end: int
) -> dict[Idle, float]:
    """One gap, by what the CPU was at. What follows a wait that ended in it is the wait's doing."""
    first_wait = bisect_left(waits, begin)
    waited = waits[first_wait] if first_wait < len(waits) and waits[first_wait] <= end else None
    parts: dict[Idle, float] = defaultdict(float)
    place = max(bisect_right(times, begin) - 1, 0)
    while begin < end:
        upto = min(times[place + 1] if place + 1 < len(times) else end, end)
        why = {Phase.DATA: Idle.DATA, Phase.COPY: Idle.COPY}.get(phases[place], Idle.LAUNCH)
        if why is Idle.LAUNCH and waited is not None:
            why = Idle.SYNC
        parts[why] += max(upto - begin, 0) / 1e9
        begin, place = max(upto, begin), place + 1
        if place >= len(times):
            parts[Idle.LAUNCH] += max(end - begin, 0) / 1e9
            break
    return dict(parts)
