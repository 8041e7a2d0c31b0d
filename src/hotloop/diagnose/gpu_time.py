"""What the GPU did during the steps that were looked into: when it was busy, and why it was not.

Looking slows the CPU down, and with it the queueing of work, but not the work. So what a step takes
longer than in the timed trial is taken away again from the time that the GPU idles.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache

from hotloop import timeline
from hotloop.diagnose import spans
from hotloop.diagnose.base import Case
from hotloop.diagnose.spans import Span
from hotloop.diagnose.waits import blocking_copies, charge, waits
from hotloop.inspection import Inspection, Kernels
from hotloop.measurement import Events, Kind, Measurement
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
    """The CPU was queueing the passes of the model, more slowly than the GPU did them."""
    UPDATE = "update"
    """The same of the optimizer's update."""


QUEUEING = (Idle.LAUNCH, Idle.UPDATE, Idle.SYNC)
"""While the CPU queues work, which looking makes longer, in equal parts."""


_WHY = {Phase.DATA: Idle.DATA, Phase.COPY: Idle.COPY, Phase.OPTIMIZER: Idle.UPDATE}


@dataclass(frozen=True)
class GpuTime:
    steps: int
    seconds: float
    """The whole window, evaluation left out, as long as it would have taken unobserved."""
    busy: float
    idle: dict[Idle, float]
    kernels: int
    by_wait: dict[int, float] = field(default_factory=dict)
    """Seconds that each Synchronisation has to answer for, by its index. Some of these are also
    seconds of waiting for data: removing either would do."""

    @property
    def busy_share(self) -> float:
        return self.busy / self.seconds if self.seconds else 0.0

    @property
    def idle_share(self) -> float:
        return sum(self.idle.values()) / self.seconds if self.seconds else 0.0

    def share(self, *reasons: Idle) -> float:
        idle = sum(self.idle.get(why, 0.0) for why in reasons)
        return idle / self.seconds if self.seconds else 0.0

    @property
    def step_busy(self) -> float:
        return self.busy / self.steps if self.steps else 0.0


def gpu_time(case: Case) -> GpuTime | None:
    """None where the GPU could not be looked at."""
    inspection, looked = case.inspection, case.looked
    kernels = inspection.kernels if inspection else None
    if inspection is None or looked is None or kernels is None:
        return None
    if not kernels.start_ns or not kernels.steps or kernels.end_ns <= kernels.begin_ns:
        return None
    seen = _seen(_Identity(inspection), _Identity(looked))
    # Without a loader, data is only a guess at what the script does between its calls.
    guessed = () if case.loader is not None else (Idle.DATA,)
    return _as_timed(seen, case.figures.step.mean, (*QUEUEING, *guessed))


@dataclass(frozen=True, eq=False)
class _Identity:
    """Makes a value that holds lists a key of a cache: a dozen rules ask the same question."""

    of: Inspection | Measurement

    def __hash__(self) -> int:
        return id(self.of)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.of is other.of


@lru_cache(maxsize=4)
def _seen(inspected: _Identity, looked: _Identity) -> GpuTime:
    assert isinstance(inspected.of, Inspection) and isinstance(looked.of, Measurement)
    inspection, events = inspected.of, looked.of.events
    kernels = inspection.kernels
    assert kernels is not None
    idle = _idle(kernels, events)
    every = [span for span, _ in idle]
    barriers = waits(kernels, inspection.synchronisations, spans.gaps(kernels))
    barriers += blocking_copies(events, kernels.begin_ns, kernels.end_ns)
    charged = charge(every, sorted(barriers, key=lambda wait: wait.begin_ns))
    whole = (kernels.end_ns - kernels.begin_ns) / 1e9 - _evaluating(kernels, events)
    return GpuTime(
        steps=kernels.steps,
        seconds=whole,
        busy=max(whole - spans.length(every), 0.0),
        idle=_reasons(idle, charged, Kind.DATA_END in events.kind),
        kernels=len(kernels.start_ns),
        by_wait=_sum(charged),
    )


def _idle(kernels: Kernels, events: Events) -> list[tuple[Span, Phase]]:
    """In order, each with what the CPU was at. What idles during an evaluation is left out."""
    phases = timeline.phases_at(events, events.time_ns)
    return [
        (part, phase)
        for gap in spans.gaps(kernels)
        for part, phase in spans.split(gap, events.time_ns, phases, Phase.REST)
        if phase is not Phase.EVALUATION
    ]


def _evaluating(kernels: Kernels, events: Events) -> float:
    phases = timeline.phases_at(events, events.time_ns)
    window = (kernels.begin_ns, kernels.end_ns)
    parts = spans.split(window, events.time_ns, phases, Phase.REST)
    return spans.length([part for part, phase in parts if phase is Phase.EVALUATION])


def _reasons(
    idle: list[tuple[Span, Phase]], charged: list[dict[int, float]], has_loader: bool
) -> dict[Idle, float]:
    found: dict[Idle, float] = defaultdict(float)
    for (span, phase), by_wait in zip(idle, charged, strict=True):
        why = _WHY.get(phase, Idle.LAUNCH)
        # Without a loader, data is only a guess at what the script does between its calls.
        is_waits = why in QUEUEING or (why is Idle.DATA and not has_loader)
        owed = sum(by_wait.values()) if is_waits else 0.0
        found[Idle.SYNC] += owed
        found[why] += spans.length([span]) - owed
    return {why: seconds for why, seconds in found.items() if seconds > 0}


def _sum(charged: list[dict[int, float]]) -> dict[int, float]:
    total: dict[int, float] = defaultdict(float)
    for by_wait in charged:
        for which, seconds in by_wait.items():
            total[which] += seconds
    return dict(total)


def _as_timed(seen: GpuTime, step_seconds: float, queueing: tuple[Idle, ...]) -> GpuTime:
    surplus = max(seen.seconds - step_seconds * seen.steps, 0.0)
    idle, left, kept = dict(seen.idle), surplus, 1.0
    for disturbed in (queueing, (Idle.COPY,), (Idle.DATA,)):
        before = sum(idle.get(why, 0.0) for why in disturbed)
        taken = min(before, left)
        left -= taken
        for why in disturbed:
            if before and why in idle:
                idle[why] *= 1 - taken / before
        if disturbed == queueing and before:
            kept = 1 - taken / before
    return replace(
        seen,
        seconds=seen.seconds - surplus,
        busy=seen.busy - left,
        idle=idle,
        by_wait={which: seconds * kept for which, seconds in seen.by_wait.items()},
    )
