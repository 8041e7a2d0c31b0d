"""The CPU waits for the GPU because the script wants to know a value, and the GPU then has nothing.

What a wait costs is the time that the GPU idles afterwards (`waits.py`). Where the GPU stays busy a
wait costs nothing, and is not told.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import PurePath

from hotloop.diagnose.asked_for import asking_call, seconds_under
from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.gpu_time import GpuTime, gpu_time
from hotloop.diagnose.sightings import innermost
from hotloop.diagnose.wording import seconds, times
from hotloop.inspection import Frame, Inspection, Synchronisation

MOST_PLACES = 5
SEEN_OFTEN = 0.5
"""A step. What waits more seldom than every other step is a report now and then."""


@dataclass(frozen=True)
class Place:
    """A line of the user's own that waits, by itself or inside a library."""

    frame: Frame
    what: str
    times: float
    """A step."""
    seconds: float | None
    """A step, that would be gone. None where the GPU could not be looked at."""
    inside: str = ""
    """The library's function that waits."""


def synchronisation(case: Case) -> Finding | None:
    if not case.on_gpu or case.inspection is None or not case.inspection.synchronisations:
        return None
    gpu = gpu_time(case)
    places = _places(case, case.inspection, gpu)
    if gpu is None:
        return _unpriced(places)
    step = case.figures.step.mean
    share = min(sum(place.seconds or 0.0 for place in places) / step, gpu.idle_share)
    if share < LEAST_SHARE:
        return None
    dear = [place for place in places if place.seconds][:MOST_PLACES]
    return Finding(
        rule="synchronisation",
        title=f"{_where(dear[0].frame)} makes the GPU wait: {dear[0].what}, "
        f"{times(dear[0].times, 'time')} a step",
        share=share,
        remedy=_remedy(dear[0]),
        effort=Effort.LINES,
        evidence=tuple(_line(place) for place in dear),
        places=tuple(dict.fromkeys(place.frame for place in dear)),
        cause=dear[0].what,
    )


def _places(case: Case, inspection: Inspection, gpu: GpuTime | None) -> list[Place]:
    """The dearest first; where prices are not known, the one that waits most often."""
    together: dict[tuple[str, int, str], list[int]] = defaultdict(list)
    for which, wait in enumerate(inspection.synchronisations):
        frame = innermost(wait.stack)
        if frame is not None:
            together[frame.file, frame.line, wait.what].append(which)
    calls: set[tuple[str, int]] = set()
    found = [_place(case, inspection, gpu, numbers, calls) for numbers in together.values()]
    return sorted(found, key=lambda place: (-(place.seconds or 0.0), -place.times))


def _place(
    case: Case,
    inspection: Inspection,
    gpu: GpuTime | None,
    numbers: list[int],
    calls: set[tuple[str, int]],
) -> Place:
    waits = [inspection.synchronisations[number] for number in numbers]
    frame = innermost(waits[0].stack)
    assert frame is not None
    cost = None
    if gpu is not None:
        cost = sum(gpu.by_wait.get(number, 0.0) for number in numbers) / gpu.steps
        # Idling after a wait is in part the time that the asking itself takes.
        cost = max(cost, _only_asked_for(case, waits, calls)) if cost else 0.0
    return Place(
        frame=frame,
        what=waits[0].what,
        times=_times_a_step(inspection, waits),
        seconds=cost,
        inside=_inside(waits[0], frame),
    )


def _times_a_step(inspection: Inspection, waits: list[Synchronisation]) -> float:
    kernels = inspection.kernels
    begun = [at for wait in waits for at in wait.time_ns]
    if kernels is not None and kernels.steps:
        within = [at for at in begun if kernels.begin_ns <= at < kernels.end_ns]
        return len(within) / kernels.steps
    return len(begun) / max(inspection.steps, 1)


def _only_asked_for(case: Case, waits: list[Synchronisation], calls: set[tuple[str, int]]) -> float:
    """Seconds a step that go when nobody asks, for each call that asks once: `calls` notes them."""
    call = asking_call(case, waits[0].stack)
    if call is None or call in calls:
        return 0.0
    calls.add(call)
    return seconds_under(case, call, waits)


def _inside(wait: Synchronisation, frame: Frame) -> str:
    last = wait.stack[-1]
    return "" if last == frame else f"{last.function} in {PurePath(last.file).name}"


def _unpriced(places: list[Place]) -> Finding | None:
    often = [place for place in places if place.times >= SEEN_OFTEN][:MOST_PLACES]
    if not often:
        return None
    return Finding(
        rule="synchronisation",
        title=f"{_where(often[0].frame)} waits for the GPU: {often[0].what}",
        share=0.0,
        remedy=_remedy(often[0]),
        effort=Effort.LINES,
        evidence=(*(_line(place) for place in often), "what that costs could not be seen"),
        places=tuple(dict.fromkeys(place.frame for place in often)),
        cause=often[0].what,
        is_limit=False,
    )


def _remedy(place: Place) -> str:
    if place.what in ("if tensor", "nonzero", "a hidden wait", "unique", "in tensor"):
        return "Let the GPU decide: torch.where, or multiplying by the mask, keeps the size fixed."
    return "Ask for it every hundredth step, for all values at once, and only after the step."


def _where(frame: Frame) -> str:
    return f"{PurePath(frame.file).name}:{frame.line}"


def _line(place: Place) -> str:
    cost = f", {seconds(place.seconds)} lost" if place.seconds is not None else ""
    inside = f", inside {place.inside}" if place.inside else ""
    return f"{_where(place.frame)} {place.what}{inside}: {times(place.times, 'time')} a step{cost}"
