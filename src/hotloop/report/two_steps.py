"""Two steps in a row as they passed: what the CPU did, what was copied and what the GPU did."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from hotloop import timeline
from hotloop.durations import Run
from hotloop.figures import step_times
from hotloop.measurement import Events, Kind, Measurement
from hotloop.report.phase_names import NAMES, phase_names
from hotloop.report.sides import Side
from hotloop.timeline import Phase

CPU, COPIES, GPU = "CPU", "copies", "GPU"
BY_EVENTS = (
    "The GPU row shows spans between marks that the CPU queued, laid against the CPU's clock as "
    "early as can be: nothing runs before it was queued."
)


@dataclass(frozen=True)
class Bar:
    begin: float
    """Seconds since the first of the two steps began."""
    end: float
    phase: str
    """Or "kernel"."""
    label: str


@dataclass(frozen=True)
class Lane:
    name: str
    bars: tuple[Bar, ...]

    def busy(self) -> float:
        """Seconds in which there is a bar, overlaps counted once."""
        total = reached = 0.0
        for bar in sorted(self.bars, key=lambda one: one.begin):
            total += max(0.0, bar.end - max(bar.begin, reached))
            reached = max(reached, bar.end)
        return total


@dataclass(frozen=True)
class TwoSteps:
    label: str
    seconds: float
    boundary: float
    """When the first step ended."""
    lanes: tuple[Lane, ...]
    note: str = ""
    timed: bool = True
    """False: looking made it longer, so its length is not to be compared."""


@dataclass(frozen=True)
class Window:
    begin_ns: int
    middle_ns: int
    end_ns: int
    gpu_timed: bool = False
    """Whether the GPU's clock was read all through it."""

    def bar(self, begin_ns: float, end_ns: float, phase: str, label: str) -> Bar | None:
        """The part of it that lies inside. None when nothing does."""
        begin, end = max(begin_ns, self.begin_ns), min(end_ns, self.end_ns)
        if end <= begin:
            return None
        return Bar((begin - self.begin_ns) / 1e9, (end - self.begin_ns) / 1e9, phase, label)

    def steps(
        self, label: str, lanes: Sequence[Lane], note: str = "", timed: bool = True
    ) -> TwoSteps:
        seconds = (self.end_ns - self.begin_ns) / 1e9
        boundary = (self.middle_ns - self.begin_ns) / 1e9
        kept = tuple(lane for lane in lanes if lane.bars)
        return TwoSteps(label, seconds, boundary, kept, note, timed)


def rows(sides: Sequence[Side]) -> tuple[TwoSteps, ...]:
    found = (_of_side(side) for side in sides)
    return tuple(each for each in found if each is not None)


def _of_side(side: Side) -> TwoSteps | None:
    made, batches = _two_steps(side.label, side.trial.measurement), side.trial.own_batches
    if made is None or batches == 1:
        return made
    longer = f"Each of these steps takes {batches:g} of the job's own batches."
    return replace(made, note=f"{longer} {made.note}".strip())


def cpu_lane(measurement: Measurement, window: Window) -> Lane:
    events = measurement.events
    first, last = _inside(events, window)
    phases = timeline.phases_at(events, events.time_ns[first : last + 1])
    spans: list[tuple[int, int, Phase]] = []
    for place, phase in zip(range(first, last), phases, strict=False):
        begin, end = events.time_ns[place], events.time_ns[place + 1]
        if spans and spans[-1][2] is phase and spans[-1][1] == begin:
            begin = spans.pop()[0]
        spans.append((begin, end, phase))
    return _lane(CPU, window, spans, phase_names(measurement))


def copy_lane(events: Events, window: Window) -> Lane:
    first, last = _inside(events, window)
    spans: list[tuple[int, int, Phase]] = []
    begun: int | None = None
    for place in range(first, last + 1):
        if events.kind[place] == Kind.COPY_BEGIN:
            begun = events.time_ns[place]
        elif events.kind[place] == Kind.COPY_END and begun is not None:
            spans.append((begun, events.time_ns[place], Phase.COPY))
            begun = None
    return _lane(COPIES, window, spans)


def _two_steps(label: str, measurement: Measurement | None) -> TwoSteps | None:
    if measurement is None:
        return None
    window = _typical(measurement)
    if window is None:
        return None
    events = measurement.events
    gpu = _gpu_lane(measurement, window) if window.gpu_timed else Lane(GPU, ())
    lanes = (cpu_lane(measurement, window), copy_lane(events, window), gpu)
    return window.steps(label, lanes, BY_EVENTS if gpu.bars else "")


def _typical(measurement: Measurement) -> Window | None:
    """Two steady steps that last as long as most do; where the GPU was timed, if it was."""
    events = measurement.events
    run, times = Run(events), step_times(measurement)
    if times is None:
        return None
    ends, seconds = run.ends, run.seconds().tolist()
    steady = [
        place
        for place in range(max(times.warm_up_steps, 1), len(ends) - 1)
        if _lasted(events, ends, place) <= 1.01 * (seconds[place] + seconds[place + 1])
    ]
    seen = set(measurement.gpu.event)
    # The step before as well: the GPU is still at it when the first of the two begins.
    timed = [place for place in steady if place > 1 and _all_in(seen, ends[place - 2 : place + 2])]
    usual = 2 * times.step.p50
    best = min(
        timed or steady,
        key=lambda place: abs(seconds[place] + seconds[place + 1] - usual),
        default=None,
    )
    if best is None:
        return None
    begin, middle, end = (events.time_ns[ends[best + shift]] for shift in (-1, 0, 1))
    return Window(begin, middle, end, bool(timed))


def _lasted(events: Events, ends: list[int], place: int) -> float:
    """With an evaluation in between, if there was one."""
    return (events.time_ns[ends[place + 1]] - events.time_ns[ends[place - 1]]) / 1e9


def _gpu_lane(measurement: Measurement, window: Window) -> Lane:
    events = measurement.events
    at = dict(zip(measurement.gpu.event, measurement.gpu.ms, strict=True))
    near = _stretch(measurement, window)
    late = max((events.time_ns[index] - at[index] * 1e6 for index in near), default=0.0)
    spans = [
        (at[one] * 1e6 + late, at[two] * 1e6 + late, timeline.phase_of(Kind(events.kind[one])))
        for one, two in pairwise(near)
        if two == one + 1 and events.kind[two] == events.kind[one] + 1 and not events.kind[one] % 2
    ]
    return _lane(GPU, window, spans)


def _stretch(measurement: Measurement, window: Window) -> list[int]:
    """The events around the window that the GPU's clock saw without a break."""
    times = measurement.events.time_ns
    timed = sorted(measurement.gpu.event)
    inside = [p for p, i in enumerate(timed) if window.begin_ns <= times[i] <= window.end_ns]
    if not inside:
        return []
    first, last = inside[0], inside[-1]
    gap = 2 * (inside[-1] - inside[0] + 1)  # a new stretch begins many events later
    while first > 0 and timed[first] - timed[first - 1] < gap:
        first -= 1
    return timed[first : last + 1]


def _lane(
    name: str,
    window: Window,
    spans: Sequence[tuple[float, float, Phase]],
    names: dict[Phase, str] = NAMES,
) -> Lane:
    found = (window.bar(begin, end, phase, names[phase]) for begin, end, phase in spans)
    return Lane(name, tuple(bar for bar in found if bar is not None))


def _inside(events: Events, window: Window) -> tuple[int, int]:
    """Indices of the first and the last event of the window."""
    first = bisect_left(events.time_ns, window.begin_ns)
    return first, min(bisect_right(events.time_ns, window.end_ns), len(events) - 1)


def _all_in(seen: set[int], events: list[int]) -> bool:
    return bool(seen) and seen.issuperset(events)
