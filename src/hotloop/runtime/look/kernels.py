"""Everything that runs on the GPU during a few steps, by torch's profiler."""

from __future__ import annotations

import time
from typing import Any

from hotloop.inspection import Kernels

MOST_KERNELS = 60_000


class KernelProbe:
    """The profiler is on for one step longer than what is kept: starting it disturbs.

    The GPU may be dozens of steps behind the CPU. So it catches up before the kept steps begin and
    before they end: what it then does in between is these steps' work, and all of it.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._profiler: Any = None
        self._begin_ns = 0
        self._catch_up = torch.cuda.synchronize  # before anybody listens to who calls it

    def start(self) -> None:
        profiler = self._torch.profiler
        self._profiler = profiler.profile(activities=[profiler.ProfilerActivity.CUDA])
        self._profiler.start()

    def begin(self) -> None:
        self._catch_up()
        self._begin_ns = time.perf_counter_ns()

    def stop(self, steps: int) -> Kernels | None:
        """None where the counters could not be read."""
        self._catch_up()
        end_ns = time.perf_counter_ns()
        self._profiler.stop()
        # The profiler counts from 1970; everything else here from when the machine started.
        offset = time.time_ns() - time.perf_counter_ns()
        events = self._profiler.profiler.kineto_results.events()
        on_device = [event for event in events if _ran_on_device(event)]
        self._profiler = None
        kept = Kernels(steps, self._begin_ns, end_ns)
        numbers: dict[str, int] = {}
        for event in sorted(on_device, key=lambda one: one.start_ns())[:MOST_KERNELS]:
            start = event.start_ns() - offset
            if start + event.duration_ns() > self._begin_ns and start <= end_ns:
                number = numbers.setdefault(event.name(), len(numbers))
                kept.name.append(number)
                kept.start_ns.append(start)
                kept.duration_ns.append(event.duration_ns())
        kept.names.extend(numbers)
        return kept if kept.start_ns else None


def _ran_on_device(event: Any) -> bool:
    """A range that somebody named is shown there too, and is no work."""
    named = getattr(event, "is_user_annotation", None)
    return "CUDA" in str(event.device_type()) and not (named and named())
