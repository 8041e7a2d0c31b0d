"""Where the training thread was seen, by phase and by line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hotloop import timeline
from hotloop.diagnose.base import Case
from hotloop.inspection import Frame, LoaderLook, Samples
from hotloop.timeline import Phase


@dataclass(frozen=True)
class Sighting:
    phase: str
    stack: tuple[Frame, ...]
    """Outermost first."""
    seconds: float

    @property
    def line(self) -> Frame | None:
        """The innermost line of the user's own."""
        return innermost(self.stack)

    def passes(self, *names: str) -> bool:
        """Whether it was inside one of these, given as "function" or "file.py:function"."""
        return any(_is_called(frame, name) for frame in self.stack for name in names)


def sightings(case: Case, clipping: bool = True) -> list[Sighting]:
    """Of the job's own process. Empty where it was not looked into.

    `clipping`: see `timeline.steps`.
    """
    if case.inspection is None or case.looked is None:
        return []
    samples = case.inspection.samples
    phases = timeline.phases_at(case.looked.events, samples.time_ns, clipping)
    return _collected(samples, [phase.value for phase in phases])


def in_workers(case: Case) -> list[Sighting]:
    """Of all the loader's workers; they know no phases."""
    return [
        sighting
        for look in at_training(case)
        for sighting in _collected(look.samples, [""] * len(look.samples.stack))
    ]


def at_training(case: Case) -> list[LoaderLook]:
    """What was seen of loaders that steps draw from, and not only an evaluation."""
    looks = case.inspection.loaders if case.inspection else []
    if case.looked is None:
        return looks
    events = case.looked.events
    seldom = timeline.read_seldom(events, timeline.step_ends(events))
    return [look for look in looks if look.loader not in seldom]


def seconds_by_line(
    seen: list[Sighting], belongs: Callable[[Sighting], bool] = lambda sighting: True
) -> list[tuple[Frame, float]]:
    """The user's own lines and how long they were seen, the dearest first."""
    spent: dict[tuple[str, int], float] = defaultdict(float)
    frames: dict[tuple[str, int], Frame] = {}
    for sighting in seen:
        line = sighting.line
        if line is not None and belongs(sighting):
            spent[line.file, line.line] += sighting.seconds
            frames[line.file, line.line] = line
    dearest = sorted(spent, key=lambda place: -spent[place])
    return [(frames[place], spent[place]) for place in dearest]


def share(
    seen: list[Sighting],
    belongs: Callable[[Sighting], bool],
    among: Callable[[Sighting], bool] = lambda sighting: True,
) -> float:
    """Of the time that was seen, that of those which belong; 0.0 where nothing was seen."""
    whole = sum(sighting.seconds for sighting in seen if among(sighting))
    part = sum(sighting.seconds for sighting in seen if among(sighting) and belongs(sighting))
    return part / whole if whole else 0.0


def of_a_step(
    case: Case,
    seen: list[Sighting],
    belongs: Callable[[Sighting], bool],
    phases: Iterable[Phase],
) -> float:
    """Of a timed step: in each phase, the share of what was seen there that belongs."""
    whole: dict[str, float] = defaultdict(float)
    part: dict[str, float] = defaultdict(float)
    for sighting in seen:
        whole[sighting.phase] += sighting.seconds
        part[sighting.phase] += sighting.seconds * belongs(sighting)
    return sum(case.share(phase) * part[phase] / whole[phase] for phase in phases if whole[phase])


def innermost(stack: tuple[Frame, ...] | list[Frame]) -> Frame | None:
    return next((frame for frame in reversed(stack) if frame.is_users), None)


def _collected(samples: Samples, phases: list[str]) -> list[Sighting]:
    """Equal ones as one.

    A worker's columns are written while it is still being watched: the last looks may lack a part.
    """
    stacks = [all(i < len(samples.frames) for i in stack) for stack in samples.stacks]
    spent: dict[tuple[str, int], int] = defaultdict(int)
    for phase, stack, weight in zip(phases, samples.stack, samples.weight_ns, strict=False):
        if stack < len(stacks) and stacks[stack]:
            spent[phase, stack] += weight
    return [
        Sighting(phase, tuple(samples.frames[i] for i in samples.stacks[stack]), weight / 1e9)
        for (phase, stack), weight in spent.items()
    ]


def _is_called(frame: Frame, name: str) -> bool:
    file, _, function = name.rpartition(":")
    named = frame.function == function or frame.function.endswith(f".{function}")  # a method
    return named and (not file or frame.file.endswith(file))
