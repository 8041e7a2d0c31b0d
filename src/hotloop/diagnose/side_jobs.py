"""What a training thread does beside the training: it writes a log, draws a figure, copies, sleeps.

Told by names: by the function or the library that was running, or by what a line calls. What has no
such name is told by torch's operators: a line that queues none, though it runs in most steps and
takes time, is outside torch, and of others it is known that only Python takes up what they compute.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from enum import StrEnum

from hotloop.diagnose.base import Case
from hotloop.diagnose.checkpoints import is_saving
from hotloop.diagnose.loops import at_a_loop
from hotloop.diagnose.peaks import operators
from hotloop.diagnose.regular import in_most_steps
from hotloop.diagnose.sightings import Sighting, innermost, sightings
from hotloop.inspection import OperatorLine
from hotloop.timeline import Phase

Place = tuple[str, int | str]
"""A line, or a function."""
MOSTLY = 1 / 3
"""Of what is seen in a call that trains nothing. Then what else it does was done for that."""
TORN = 0.05
"""Of what is seen under a line. A thread runs on while its stack is read, so that an outer frame
may already be at the next line: that little proves nothing."""


class Kind(StrEnum):
    FIGURES = "drawing figures"
    TEXT = "writing tensors as text"
    LOGGING = "logging"
    JSON = "writing JSON"
    TABLES = "writing tables"
    COPIES = "copying objects by copy.deepcopy"
    GARBAGE = "collecting garbage by gc.collect"
    SLEEP = "sleeping"
    PROFILER = "a profiler"
    VALUES = "values that only Python reads"
    OUTSIDE = "code outside torch"


_FUNCTIONS = {
    Kind.FIGURES: r"/(matplotlib|mpl_toolkits|seaborn|plotly|bokeh)/",
    Kind.TEXT: r"/torch/_tensor_str\.py:|/numpy/_?core/arrayprint\.py:",
    Kind.LOGGING: r"/(tensorboard|tensorboardX|wandb|mlflow|comet_ml|neptune|clearml|loguru|tqdm"
    r"|rich)/|/logging/(__init__|handlers)\.py:",
    Kind.JSON: r"/json/encoder\.py:|/yaml/(dumper|emitter|representer|serializer)\.py:",
    Kind.TABLES: r"/pandas/io/formats/|/pandas/core/reshape/concat\.py:",
    Kind.COPIES: r"/copy\.py:",
    # And not `record_function`, which names parts of a step whether it is profiled or not.
    Kind.PROFILER: r"/torch/autograd/profiler(_util)?\.py:(?!record_function)"
    r"|/torch/profiler/profiler\.py:",
}
_CALLS = {
    Kind.JSON: r"\bjson\.dumps?\(",
    Kind.GARBAGE: r"\bgc\.collect\(",
    Kind.SLEEP: r"\b(time\.)?sleep\(",
}
"""By the innermost line: what it calls is not written in Python, and so on no stack."""


_OUTSIDE = r"/python3\.\d+/(?!(site|dist)-packages/)|/(numpy|pandas|PIL|cv2|scipy|sklearn|skimage)/"
_WAITS = r"/(threading|queue|selectors|socket|subprocess|ssl)\.py$|/(multiprocessing|concurrent)/"
"""Of the standard library's: what waits for others, and may be another's work."""
AN_OPERATOR = 20e-6
"""Seconds of Python and dispatch beside each, at most. The rest of a line is something else."""
MUCH_MORE = 4
"""Times what a line's operators took while they were counted."""


def side_job(sighting: Sighting) -> Kind | None:
    """By the innermost frame that can be told: a figure that is drawn for a log is a figure.

    Of those that the user's line calls: a progress bar that batches pass through is around it.
    """
    if is_saving(sighting) or not sighting.stack:
        return None
    called_by = max((i for i, one in enumerate(sighting.stack) if one.is_users), default=-1)
    source = sighting.stack[-1].source
    called = (kind for kind, calls in _CALLS.items() if re.search(calls, source))
    files = (
        kind
        for frame in reversed(sighting.stack[called_by + 1 :])
        for kind, named in _FUNCTIONS.items()
        if re.search(named, f"{frame.file}:{frame.function}")
    )
    return next(called, None) or next(files, None)


def beside_the_training(case: Case) -> Callable[[Sighting], Kind | None]:
    """What each sighting was for: with what is made ready for it by the same call."""
    is_elsewhere = _elsewhere(case)
    seen = [one for one in sightings(case) if not is_elsewhere(one)]
    calls, unnamed = _calls(case, seen), _unnamed(case, seen)

    def of(sighting: Sighting) -> Kind | None:
        if is_elsewhere(sighting):
            return None
        told = (calls[place] for place in _places(sighting) if place in calls)
        return next(told, None) or side_job(sighting) or unnamed(sighting)

    return of


def _unnamed(case: Case, seen: list[Sighting]) -> Callable[[Sighting], Kind | None]:
    """Not of what is drawn by hand: numbers that are read choose a batch, and Python makes it."""
    counted = operators(case)
    if counted is None or case.on_gpu or case.looked is None:
        return lambda sighting: None
    trained, at_one, often = _trained(case), at_a_loop(case), in_most_steps(case)
    lines: dict[Place, list[OperatorLine]] = defaultdict(list)
    for line in counted.lines:
        lines[line.place.file, line.place.line].append(line)
    spent: dict[Place, float] = defaultdict(float)
    for one in seen:
        if one.line is not None:
            spent[one.line.file, one.line.line] += one.seconds
    steps = max(case.inspection.steps - counted.steps, 1) if case.inspection else 1

    def of(sighting: Sighting) -> Kind | None:
        line = sighting.line
        if line is None or sighting.phase == Phase.DATA or _trains(sighting, set()):
            return None
        place = line.file, line.line
        here = lines.get(place, [])
        if here and all(one.only_read for one in here) and not at_one(sighting):
            return Kind.VALUES
        known = sum(one.seconds + AN_OPERATOR * one.operators for one in here) / counted.steps
        inner = sighting.stack[-1]
        is_outside = inner.is_users or re.search(_OUTSIDE, inner.file)
        waits = any(re.search(_WAITS, frame.file) for frame in sighting.stack)
        much = spent[place] / steps > MUCH_MORE * known and place not in trained
        return Kind.OUTSIDE if is_outside and much and not waits and place in often else None

    return of


def _trained(case: Case) -> set[Place]:
    counted = operators(case)
    lines = counted.lines if counted else []
    return {(line.place.file, line.place.line) for line in lines if line.backward_operators}


def _elsewhere(case: Case) -> Callable[[Sighting], bool]:
    """A loader's own work, and an evaluation's; and what may as well be a wait for data, or for a
    GPU."""
    others = {Phase.EVALUATION, Phase.DATA} if case.loader else {Phase.EVALUATION}
    synchronisations = case.inspection.synchronisations if case.inspection else []
    waits = {innermost(wait.stack) for wait in synchronisations} - {None}

    def is_elsewhere(one: Sighting) -> bool:
        sleeps = one.phase == Phase.DATA and side_job(one) is Kind.SLEEP
        return one.phase in others or sleeps or (bool(waits) and one.line in waits)

    return is_elsewhere


def _calls(case: Case, seen: list[Sighting]) -> dict[Place, Kind]:
    """Those that do much of it, and nothing for the training."""
    trained = _trained(case)
    whole: dict[Place, float] = defaultdict(float)
    trains: dict[Place, float] = defaultdict(float)
    beside: dict[Place, Counter[Kind]] = defaultdict(Counter)
    for sighting in seen:
        kind, places = side_job(sighting), _places(sighting)
        does_train = kind is None and _trains(sighting, trained)
        for place in places:
            whole[place] += sighting.seconds
            trains[place] += sighting.seconds * does_train
            if kind is not None:
                beside[place][kind] += sighting.seconds  # type: ignore[assignment]
    return {
        place: kinds.most_common(1)[0][0]
        for place, kinds in beside.items()
        if kinds.total() >= MOSTLY * whole[place] and trains[place] <= TORN * whole[place]
    }


def _trains(sighting: Sighting, trained: set[Place]) -> bool:
    line = sighting.line
    at_one = line is not None and (line.file, line.line) in trained
    return at_one or sighting.phase == Phase.BACKWARD or sighting.passes("backward", "step")


def _places(sighting: Sighting) -> set[Place]:
    users = [frame for frame in sighting.stack if frame.is_users]
    lines: set[Place] = {(frame.file, frame.line) for frame in users}
    return lines | {(frame.file, frame.function) for frame in users}
