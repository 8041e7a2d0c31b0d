"""What each line costs that waits for the GPU.

That is the time that the GPU idles afterwards (`waits.py`), and where the line works for nothing
but its answer, all the time that it takes the CPU: as far as the GPU idles.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import PurePath

from hotloop.diagnose.asked_for import asking_call, seconds_under
from hotloop.diagnose.base import Case
from hotloop.diagnose.gpu_time import GpuTime, Idle
from hotloop.diagnose.sightings import innermost
from hotloop.inspection import Frame, Inspection, Synchronisation


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


def priced(case: Case, gpu: GpuTime | None) -> list[Place]:
    """The dearest first; where prices are not known, the one that waits most often."""
    inspection = case.inspection
    if inspection is None:
        return []
    together: dict[tuple[str, int, str], list[int]] = defaultdict(list)
    for which, wait in enumerate(inspection.synchronisations):
        frame = innermost(wait.stack)
        if frame is not None:
            together[frame.file, frame.line, wait.what].append(which)
    calls: set[tuple[str, int]] = set()
    found = [_place(case, inspection, gpu, numbers, calls) for numbers in together.values()]
    found = _kept_to(found, sum(gpu.idle.values()) / gpu.steps) if gpu else found
    return sorted(found, key=lambda place: (-(place.seconds or 0.0), -place.times))


def queueing(case: Case, gpu: GpuTime) -> float:
    """Seconds a step that the GPU idles while the CPU queues what is not only asked for.

    What a line queues for its answer alone counts as the wait's doing, not as slow queueing.
    """
    asked = sum(place.seconds or 0.0 for place in priced(case, gpu))
    more = max(asked - gpu.idle.get(Idle.SYNC, 0.0) / gpu.steps, 0.0)
    return max(gpu.idle.get(Idle.LAUNCH, 0.0) / gpu.steps - more, 0.0)


def _kept_to(found: list[Place], idle: float) -> list[Place]:
    """No more can be won than the GPU idles: else it is what a step takes."""
    whole = sum(place.seconds or 0.0 for place in found)
    part = min(idle / whole, 1.0) if whole else 1.0
    return [replace(place, seconds=(place.seconds or 0.0) * part) for place in found]


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
    return seconds_under(case, call)


def _inside(wait: Synchronisation, frame: Frame) -> str:
    last = wait.stack[-1]
    return "" if last == frame else f"{last.function} in {PurePath(last.file).name}"
