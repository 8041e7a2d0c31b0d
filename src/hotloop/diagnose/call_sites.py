"""Lines of the user's own that lead to what was seen: in the loop, at the loader, in a dataset."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from hotloop.diagnose.sightings import Sighting, innermost, seconds_by_line
from hotloop.inspection import Call, Frame, Pass
from hotloop.timeline import Phase

LOADING = "torch/utils/data/"
"""In the path of the files that stand between the script's loop and its dataset."""
WORKER = "_worker_loop"
DRAWS = re.compile(r"\b(for|next|yield from)\b")
NO_LOADING = ("multiprocessing/queues.py", "/dataclasses.py", "/json/__init__.py", "/pathlib.py")
MOST_PLACES = 4
TRAINING = (Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)
COMMON = 0.9
"""Of the training that was seen. A function open during so much of it holds the loop: the model's
own are closed while gradients are computed."""

LEAST_OF_THE_DEAREST = 0.1
"""A line that was seen for a smaller part of the dearest one's time is not what it is about."""

_Function = tuple[str, str]


def in_the_loop(seen: list[Sighting], belongs: Callable[[Sighting], bool]) -> list[Frame]:
    """The training loop's own lines from which it is called, the dearest first."""
    loop = _loop(seen)
    calls = (
        (frame, sighting.seconds)
        for sighting in seen
        if belongs(sighting)
        for frame in reversed(sighting.stack)
        if _function(frame) == loop
    )
    return dearest(calls)


def at_the_loader(seen: list[Sighting]) -> list[Frame]:
    """Where batches are drawn: a generator of the user's own, and the line that draws from it."""
    return dearest(
        (frame, sighting.seconds) for sighting in seen for frame in _drawn_at(_outside(sighting))
    )


def _drawn_at(outside: tuple[Frame, ...]) -> list[Frame]:
    """Of two functions the outer is named where it draws: else it merely calls the training."""
    users = _users(outside)
    return [*users[-1:], *(frame for frame in users[-2:-1] if DRAWS.search(frame.source))]


def in_the_dataset(seen: list[Sighting]) -> list[Frame]:
    """The first of the user's lines inside the loader: in `__getitem__`, or a collate function."""
    entered = ((_users(inside_the_loader(sighting)), sighting.seconds) for sighting in seen)
    return dearest((inside[0], seconds) for inside, seconds in entered if inside)


def dearest(lines: Iterable[tuple[Frame, float]]) -> list[Frame]:
    """Those that take a part of it worth naming, the dearest first."""
    spent: dict[tuple[str, int], float] = defaultdict(float)
    frames: dict[tuple[str, int], Frame] = {}
    for frame, seconds in lines:
        spent[frame.file, frame.line] += seconds
        frames[frame.file, frame.line] = frame
    least = LEAST_OF_THE_DEAREST * max(spent.values(), default=0.0)
    ordered = sorted(spent, key=lambda place: -spent[place])
    return [frames[place] for place in ordered if spent[place] >= least]


def dearest_lines(
    seen: list[Sighting], belongs: Callable[[Sighting], bool] = lambda sighting: True
) -> list[Frame]:
    """The innermost of the user's own."""
    return dearest(seconds_by_line(seen, belongs))


def dearest_calls(calls: Sequence[Call | Pass]) -> list[Frame]:
    """The user's lines that make them."""
    lines = ((innermost(call.stack), call.seconds) for call in calls)
    return dearest((line, spent) for line, spent in lines if line is not None)


def distinct(frames: Iterable[Frame]) -> tuple[Frame, ...]:
    """A finding's places: each line once, and no more than one cares to look at."""
    return tuple({(frame.file, frame.line): frame for frame in frames}.values())[:MOST_PLACES]


def _loop(seen: list[Sighting]) -> _Function | None:
    """The innermost of the user's functions that is open during most of the training."""
    training = [sighting for sighting in seen if sighting.phase in TRAINING]
    whole = sum(sighting.seconds for sighting in training)
    open_for: dict[_Function, float] = defaultdict(float)
    depth: dict[_Function, int] = {}
    for sighting in training:
        for number, frame in enumerate(sighting.stack):
            if frame.is_users:
                depth.setdefault(_function(frame), number)
        for function in {_function(frame) for frame in sighting.stack if frame.is_users}:
            open_for[function] += sighting.seconds
    common = [function for function, spent in open_for.items() if spent > COMMON * whole]
    return max(common, key=lambda function: depth[function], default=None)


def is_idle(sighting: Sighting) -> bool:
    """A worker that waits to be told what to load next, or writes down for us what it has seen.

    Our own lines are on no stack: what they call comes right after the worker's loop, or nothing.
    """
    stack = sighting.stack
    after = [i + 1 for i, frame in enumerate(stack) if frame.function == WORKER]
    called = stack[after[-1] :][:1] if after else stack[-1:]
    return not called or called[0].file.endswith(NO_LOADING)


def inside_the_loader(sighting: Sighting) -> tuple[Frame, ...]:
    """All of it, where no loader is on the way."""
    return sighting.stack[len(_outside(sighting)) :]


def _outside(sighting: Sighting) -> tuple[Frame, ...]:
    entered = (i for i, frame in enumerate(sighting.stack) if LOADING in frame.file)
    return sighting.stack[: next(entered, 0)]


def _users(stack: tuple[Frame, ...]) -> list[Frame]:
    return [frame for frame in stack if frame.is_users]


def _function(frame: Frame) -> _Function:
    return frame.file, frame.function
