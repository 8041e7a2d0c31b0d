"""From raw events to steps, each with the phases its time went to. Pure, and the same everywhere.

A phase's time is exclusive: what is nested inside it (a closure's forward pass inside
`optimizer.step`) belongs to the inner one. So the phases of a step and the rest add up to the step.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

from hotloop import evaluations, nesting
from hotloop.measurement import Events, GpuTimes, Kind, Losses
from hotloop.phases import PHASE_OF, STEP_PHASES, Phase, following, phase_of_gaps
from hotloop.turns import Turns

__all__ = ["STEP_PHASES", "Phase"]


@dataclass(frozen=True)
class Step:
    seconds: float
    """End to end, from the end of the step before, without evaluation."""
    phases: dict[Phase, float]
    samples: int
    batches: int
    losses: list[float | None] = field(default_factory=list)
    gpu_seconds: float | None = None
    gpu_phases: dict[Phase, float] = field(default_factory=dict)
    """The same phases on the GPU's clock, its idle time included: they add up to its step.

    A CPU that is ahead queues a pass in no time and waits for it at the next copy, which then looks
    as if it took the whole step. The GPU's clock does not.
    """

    @property
    def evaluation(self) -> float:
        return self.phases.get(Phase.EVALUATION, 0.0)


def metronome(events: Events) -> int | None:
    """The optimizer whose steps count as the job's steps: the one that steps most often.

    Among equals the last in the cycle, so that a step ends when all of them have stepped.
    None when no optimizer stepped: parameters updated by hand, each backward pass is a step.
    """
    return Turns(_keys(events, all_of(events, Kind.OPTIMIZER_END))).metronome()


def steps(
    events: Events,
    losses: Losses | None = None,
    gpu: GpuTimes | None = None,
    clipping: bool = True,
) -> list[Step]:
    """Every complete step of the run, in order, warm-up included.

    `clipping`: whether what is done between backward() and the optimizer counts as the optimizer.
    """
    edges = step_ends(events)
    if not edges:
        return []
    seldom = read_seldom(events, edges)
    owners = _owners(events, edges, seldom, clipping)
    loss_at = dict(zip(losses.event, losses.value, strict=True)) if losses else {}
    gpu_at = dict(zip(gpu.event, gpu.ms, strict=True)) if gpu else {}
    return [
        _step(events, owners, first, last, loss_at, gpu_at, seldom)
        for first, last in zip([0, *edges[:-1]], edges, strict=True)
    ]


def read_seldom(events: Events, edges: list[int], loaded: list[int] | None = None) -> set[int]:
    """Loaders whose batches few steps see: those of an evaluation, be it with gradients.

    A step is trained on what was loaded for it: where nothing else was, as by the loader of a
    second stage or of the last fold, that is none of them.

    `loaded`: the events that tell of batches, where they are at hand.
    """
    loaded = all_of(events, Kind.DATA_END) if loaded is None else loaded
    if _are_alike(keys := _keys(events, loaded)):
        return set()
    met: dict[int, set[int]] = defaultdict(set)
    read: dict[int, set[int]] = defaultdict(set)
    for key, index in zip(keys, loaded, strict=True):
        step = bisect_right(edges, index)
        met[key].add(step)
        read[step].add(key)
    most = max(map(len, met.values()), default=0)
    few = {key for key in met if 2 * len(met[key]) < most}
    for together in (1, len(met)):  # what is read alone tells whom others are read beside
        few -= {
            key
            for key in few
            if 2 * sum(read[step] <= few and len(read[step]) <= together for step in met[key])
            > len(met[key])
        }
    return few


def training_loader(events: Events) -> int | None:
    """The loader that most steps are made on."""
    delivered = all_of(events, Kind.DATA_END)
    loaded = [index for index in delivered if events.n[index] >= 0]
    return stepped_on(events, loaded, step_ends(events))


def stepped_on(events: Events, loaded: list[int], edges: list[int]) -> int | None:
    """The loader whose batch was the last before most steps ended, of those that were `loaded`.

    Not the one that most batches came from: an evaluation may read more of them than the few steps
    of a trial do.
    """
    keys = _keys(events, loaded)
    if not _are_alike(keys):
        places = (bisect_right(loaded, edge) - 1 for edge in edges)
        keys = [keys[place] for place in places if place >= 0] or keys
    if _are_alike(keys):
        return keys[0]
    counts = Counter(keys)
    return counts.most_common(1)[0][0] if counts else None


def phase_of(kind: Kind) -> Phase:
    """What a call of this kind does, by itself."""
    return PHASE_OF[kind // 2]


def phases_at(events: Events, times_ns: list[int], clipping: bool = True) -> list[Phase]:
    """What the training thread was at, at each of these times, on the clock of the events."""
    edges = step_ends(events)
    owners = _owners(events, edges, read_seldom(events, edges), clipping) if edges else []
    if not owners:
        return [Phase.REST] * len(times_ns)
    places = [bisect_right(events.time_ns, time_ns) - 1 for time_ns in times_ns]
    return [owners[place] if place >= 0 else Phase.REST for place in places]


def step_ends(events: Events, kinds: bytes | None = None) -> list[int]:
    """Indices of the events that end a step. `kinds`: see `all_of`."""
    stepped = all_of(events, Kind.OPTIMIZER_END, kinds)
    if not stepped:
        return all_of(events, Kind.BACKWARD_END, kinds)
    keys = _keys(events, stepped)
    if _are_alike(keys):
        return stepped
    ends = Turns(keys).count()
    return [index for index, one in zip(stepped, keys, strict=True) if one in ends]


def _keys(events: Events, which: list[int]) -> list[int]:
    return list(map(events.key.__getitem__, which))


def _are_alike(keys: list[int]) -> bool:
    """As they nearly always are, and that is seen many times sooner than they are counted."""
    return bool(keys) and keys.count(keys[0]) == len(keys)


def all_of(events: Events, kind: Kind, kinds: bytes | None = None) -> list[int]:
    """Indices of the events of one kind. `kinds`: their column, if it is at hand as bytes."""
    import numpy as np  # a tenth of a second, and only where there is something to look through

    column = np.frombuffer(bytes(events.kind) if kinds is None else kinds, dtype=np.uint8)
    found: list[int] = np.flatnonzero(column == int(kind)).tolist()
    return found


def _owners(
    events: Events, edges: list[int], seldom: set[int], clipping: bool = True
) -> list[Phase]:
    """For each event the phase that the time up to the next event belongs to."""
    paused = evaluations.windows(events, edges, seldom)
    gaps = phase_of_gaps(events.kind, events.kind[edges[0]], clipping)
    inside = nesting.innermost(zip(events.kind, events.key, strict=True))
    owners = [
        gaps.get((kind, after)) or (PHASE_OF[call.what] if call else Phase.REST)
        for kind, after, call in zip(events.kind, following(events.kind), inside, strict=True)
    ]
    for first, last in paused:
        owners[first:last] = [Phase.EVALUATION] * (last - first)
    return owners


def _step(
    events: Events,
    owners: list[Phase],
    first: int,
    last: int,
    loss_at: dict[int, float | None],
    gpu_at: dict[int, float],
    seldom: set[int],
) -> Step:
    phases: dict[Phase, float] = {}
    loaded: list[int] = []
    given: Counter[int] = Counter()
    again: Counter[int] = Counter()
    times, kinds = events.time_ns, events.kind
    for index in range(first, last):
        owner, kind = owners[index], kinds[index]
        phases[owner] = phases.get(owner, 0.0) + (times[index + 1] - times[index]) / 1e9
        if kind == Kind.DATA_END and events.n[index] >= 0 and owner is not Phase.EVALUATION:
            if events.key[index] not in seldom:
                loaded.append(events.n[index])
        elif kind == Kind.FORWARD_BEGIN and owner is not Phase.EVALUATION:
            held = events.n[index]
            (given if held > 0 else again)[events.key[index]] += abs(held)
    return Step(
        seconds=sum(phases.get(phase, 0.0) for phase in STEP_PHASES),
        phases=phases,
        # Without a loader: what the busiest root module was given, and not what models made of it.
        samples=sum(loaded) or max((given or again).values(), default=0),
        batches=len(loaded),
        losses=[loss_at[i] for i in range(first, last + 1) if i in loss_at],
        gpu_seconds=_gpu_step(gpu_at, first, last),
        gpu_phases=_gpu_phases(events, owners, first, last, gpu_at),
    )


def _gpu_step(gpu_at: dict[int, float], first: int, last: int) -> float | None:
    if first not in gpu_at or last not in gpu_at:
        return None
    return (gpu_at[last] - gpu_at[first]) / 1e3


def _gpu_phases(
    events: Events, owners: list[Phase], first: int, last: int, gpu_at: dict[int, float]
) -> dict[Phase, float]:
    """By what the CPU was at between each two marks; several things share by how long they took."""
    if first not in gpu_at or last not in gpu_at:
        return {}
    marks = [index for index in range(first, last + 1) if index in gpu_at]
    spans: dict[Phase, float] = defaultdict(float)
    times = events.time_ns
    for begin, end in pairwise(marks):
        a_nanosecond = (gpu_at[end] - gpu_at[begin]) / 1e3 / max(times[end] - times[begin], 1)
        for index in range(begin, end):
            spans[owners[index]] += (times[index + 1] - times[index]) * a_nanosecond
    return {phase: span for phase, span in spans.items() if span}
