"""What it costs that the CPU waits for the GPU.

A wait by itself costs nothing: the GPU is busy meanwhile. But afterwards it has nothing to do until
the CPU has queued something again. Without the wait the CPU would have been that much ahead. So of
the time that the GPU then idles, as much is the wait's doing as the wait was long, and no more: a
CPU that is slower than the GPU has nothing to gain from waiting less.

A copy that blocks is a wait too, and stays when the others are removed. What idles after it is none
of theirs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from hotloop.diagnose.spans import Span
from hotloop.inspection import Kernels, Synchronisation
from hotloop.measurement import Events, Kind

BLOCKING = 0
"""The key of a copy that makes the CPU wait."""
QUEUEING_NS = 20_000
"""What is waited for may only just have been queued, and the GPU begins that much later."""


@dataclass(frozen=True)
class Wait:
    begin_ns: int
    seconds: float
    which: int | None
    """Index of the Synchronisation. None: a blocking copy."""


def waits(
    kernels: Kernels, synchronisations: Sequence[Synchronisation], idle: Sequence[Span]
) -> list[Wait]:
    """Those that began in the window, in order."""
    found = []
    for which, synchronisation in enumerate(synchronisations):
        times = zip(synchronisation.time_ns, synchronisation.seconds, strict=True)
        for begin_ns, seconds in times:
            if kernels.begin_ns <= begin_ns < kernels.end_ns:
                known = seconds or _until_idle(begin_ns, idle)
                found.append(Wait(begin_ns, known, which))
    return sorted(found, key=lambda wait: wait.begin_ns)


def blocking_copies(events: Events, begin_ns: int, end_ns: int) -> list[Wait]:
    """A copy's event says whether it blocks; what it waits for is not told apart from copying."""
    return [
        Wait(at, 0.0, None)
        for at, kind, key in zip(events.time_ns, events.kind, events.key, strict=True)
        if kind == Kind.COPY_BEGIN and key == BLOCKING and begin_ns <= at < end_ns
    ]


def charge(idle: Sequence[Span], barriers: Sequence[Wait]) -> list[dict[int, float]]:
    """For each idle span how many of its seconds which wait has to answer for.

    Idle spans must be in order, and so must the waits. The window is gone through twice, and the
    second time counts: what a wait at the end of a step does shows at the beginning of the next.
    """
    credit: list[tuple[int, float]] = []
    _pass(idle, barriers, credit)
    return _pass(idle, barriers, credit)


def _pass(
    idle: Sequence[Span], barriers: Sequence[Wait], credit: list[tuple[int, float]]
) -> list[dict[int, float]]:
    charged, place = [], 0
    for begin, end in idle:
        spent: dict[int, float] = defaultdict(float)
        while place < len(barriers) and barriers[place].begin_ns < end:
            wait = barriers[place]
            _spend(credit, (wait.begin_ns - begin) / 1e9, spent)
            _meet(wait, credit)
            begin, place = max(begin, wait.begin_ns), place + 1
        _spend(credit, (end - begin) / 1e9, spent)
        charged.append(dict(spent))
    for wait in barriers[place:]:
        _meet(wait, credit)
    return charged


def _meet(wait: Wait, credit: list[tuple[int, float]]) -> None:
    if wait.which is None:
        credit.clear()
    else:
        credit.append((wait.which, wait.seconds))


def _spend(credit: list[tuple[int, float]], seconds: float, spent: dict[int, float]) -> None:
    """The last wait first: it is the one that emptied the GPU."""
    while credit and seconds > 0:
        which, left = credit.pop()
        used = min(left, seconds)
        spent[which] += used
        seconds -= used
        if left > used:
            credit.append((which, left - used))


def _until_idle(begin_ns: int, idle: Sequence[Span]) -> float:
    """How long a wait lasted that nobody timed: until the GPU had done all it had."""
    place = bisect_left(idle, begin_ns + QUEUEING_NS, key=lambda span: span[1])
    return max(idle[place][0] - begin_ns, 0) / 1e9 if place < len(idle) else 0.0
