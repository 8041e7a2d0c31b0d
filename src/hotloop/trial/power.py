"""Looks at the GPU while a trial runs, and keeps little of it."""

from __future__ import annotations

import time

from hotloop.energy import PowerLog
from hotloop.machine import GpuState, GpuWatch

EVERY_SECONDS = 0.2
"""A GPU brings its counters up to date about ten times a second; a look takes a millisecond."""
MOST_LOOKS = 400
"""A long trial is looked at more seldom, so that its record stays small."""


class PowerMeter:
    """Of one trial. Without a GPU it finds that out at the first look, and is idle from then on."""

    def __init__(self, watch: GpuWatch) -> None:
        self._watch = watch
        self._every = EVERY_SECONDS
        self._next = 0.0
        self._looks: list[tuple[int, GpuState]] = []

    def look(self, now: float, last: bool = False) -> None:
        """As often as one likes. `now`: time.monotonic().

        `last`: when the trial is over, so that its final steps lie between two looks.
        """
        if self._next == float("inf") or (now < self._next and not last):
            return
        self._next = now + self._every
        state = self._watch.look()
        if state is None:
            self._next = float("inf")
            return
        self._looks.append((time.perf_counter_ns(), state))
        if len(self._looks) > MOST_LOOKS:
            self._looks = self._looks[::2]
            self._every *= 2

    def log(self) -> PowerLog | None:
        """None where nothing was seen."""
        if not self._looks:
            return None
        states = [state for _, state in self._looks]
        first = next((state.joules for state in states if state.joules is not None), 0.0)
        return PowerLog(
            time_ns=[at for at, _ in self._looks],
            joules=[_since(state.joules, first) for state in states],
            watts=[state.power_watts for state in states],
            temperature=[state.temperature for state in states],
            sm_clock=[state.sm_clock for state in states],
            utilisation=[state.utilisation for state in states],
            throttling=[state.throttling for state in states],
        )


def _since(joules: float | None, first: float) -> float | None:
    return None if joules is None else round(joules - first, 3)
