"""What a GPU was drawing while a trial ran, and what that comes to. Values and pure functions.

It is the whole GPU's: a neighbour on the same GPU is paid for too, and the rest of the machine not.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class PowerLog:
    """A few looks a second, as columns. None: this GPU or driver does not tell."""

    time_ns: list[int] = field(default_factory=list)
    """On the clock of the events: Linux has one for all processes."""
    joules: list[float | None] = field(default_factory=list)
    """The GPU's own counter, from the first look on."""
    watts: list[float | None] = field(default_factory=list)
    temperature: list[int | None] = field(default_factory=list)
    sm_clock: list[int | None] = field(default_factory=list)
    """MHz."""
    utilisation: list[int | None] = field(default_factory=list)
    """Percent."""
    throttling: list[int | None] = field(default_factory=list)
    """NVML's reasons, a bit each."""

    def __len__(self) -> int:
        return len(self.time_ns)


def joules_between(log: PowerLog, begin_ns: int, end_ns: int) -> float | None:
    """By the counter, or by the power where there is none. None outside of what was looked at."""
    if len(log) < 2 or not log.time_ns[0] <= begin_ns < end_ns <= log.time_ns[-1]:
        return None
    counted = _known(log.time_ns, log.joules)
    if counted is not None:
        return _at(*counted, end_ns) - _at(*counted, begin_ns)
    drawn = _known(log.time_ns, log.watts)
    return _area(*drawn, begin_ns, end_ns) if drawn is not None else None


def during(
    log: PowerLog, column: Sequence[float | None], begin_ns: int, end_ns: int
) -> list[float]:
    """What a column told between two times, where it told anything."""
    told = zip(log.time_ns, column, strict=True)
    return [value for at, value in told if value is not None and begin_ns <= at <= end_ns]


def _known(
    times: list[int], values: Sequence[float | None]
) -> tuple[list[int], list[float]] | None:
    """Without the looks at which it was not told. None unless both ends were."""
    if len(values) != len(times) or values[0] is None or values[-1] is None:
        return None
    told = [(at, value) for at, value in zip(times, values, strict=True) if value is not None]
    return [at for at, _ in told], [value for _, value in told]


def _at(times: list[int], values: list[float], time_ns: int) -> float:
    """On the straight line between the two nearest looks."""
    after = min(max(bisect_right(times, time_ns), 1), len(times) - 1)
    begin, end = times[after - 1], times[after]
    part = (time_ns - begin) / (end - begin) if end > begin else 0.0
    return values[after - 1] + (values[after] - values[after - 1]) * part


def _area(times: list[int], watts: list[float], begin_ns: int, end_ns: int) -> float:
    inside = [at for at in times if begin_ns < at < end_ns]
    edges = [begin_ns, *inside, end_ns]
    heights = [_at(times, watts, at) for at in edges]
    return sum(
        (right - left) / 1e9 * (low + high) / 2
        for left, right, low, high in zip(edges, edges[1:], heights, heights[1:], strict=False)
    )
