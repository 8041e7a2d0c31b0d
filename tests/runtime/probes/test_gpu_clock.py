from __future__ import annotations

from typing import Any

import pytest

from hotloop.measurement import Events, GpuTimes, Kind
from hotloop.runtime.probes.gpu_clock import GpuClock
from hotloop.seams import Seam, Seams
from hotloop.trial.spec import StopRule


class Cuda:
    """A device whose clock is five milliseconds further with every event."""

    def __init__(self, initialized: bool = True, capturing: bool = False) -> None:
        self.initialized = initialized
        self.capturing = capturing
        self.waited = 0
        self.now = 0.0

    def is_initialized(self) -> bool:
        return self.initialized

    def is_current_stream_capturing(self) -> bool:
        return self.capturing

    def synchronize(self) -> None:
        self.waited += 1

    def Event(self, enable_timing: bool) -> Any:
        assert enable_timing
        return Mark(self)


class Mark:
    def __init__(self, cuda: Cuda) -> None:
        self._cuda = cuda
        self.at = -1.0

    def record(self) -> None:
        self._cuda.now += 5.0
        self.at = self._cuda.now

    def elapsed_time(self, later: Mark) -> float:
        return later.at - self.at


MANY = 400


class Job:
    """Reaches the seams as a driver would, and logs events as the clock does."""

    def __init__(self, cuda: Cuda) -> None:
        self.seams = Seams()
        self.events = Events()
        self.clock = GpuClock(cuda)
        self.clock.attach(self.seams)

    def steps(self, count: int) -> Job:
        for _ in range(count):
            for seam, kind in (
                (self.seams.batch, Kind.DATA_BEGIN),
                (self.seams.model, Kind.FORWARD_BEGIN),
                (self.seams.backward, Kind.BACKWARD_BEGIN),
                (self.seams.step, Kind.OPTIMIZER_BEGIN),
            ):
                self._span(seam, kind)
        return self

    def whole_steps(self) -> list[int]:
        """Those that the GPU saw from edge to edge, with all that is its own in between."""
        seen = set(self.clock.times(self.events).event)
        size = 8
        return [
            number
            for number in range(1, len(self.events) // size)
            if {number * size - 1, *range(number * size + 2, (number + 1) * size)} <= seen
        ]

    def _span(self, seam: Seam, kind: Kind) -> None:
        for tell in seam.before:
            tell((), {})
        began = self._log(kind)
        self._log(Kind(kind + 1))
        for tell_after in seam.after:
            tell_after((), None, began)

    def _log(self, kind: Kind) -> int:
        now = 1000 * len(self.events)
        self.events.time_ns.append(now)
        self.events.kind.append(kind)
        self.events.key.append(0)
        self.events.n.append(0)
        return now


def test_records_whole_steps_now_and_then() -> None:
    seen = Job(Cuda()).steps(MANY).whole_steps()
    assert 0 < len(seen) < MANY / 4
    assert seen[-1] > MANY / 2


def test_the_shortest_trial_has_some() -> None:
    rule = StopRule()
    assert Job(Cuda()).steps(rule.warm_up + rule.min_steps).whole_steps()


def test_a_short_trial_that_is_steady_late_has_some_too() -> None:
    rule = StopRule()
    seen = Job(Cuda()).steps(rule.warm_up + rule.min_steps).whole_steps()
    assert len([number for number in seen if number > rule.min_steps / 2]) > 3


def test_of_two_optimizers_a_whole_cycle_is_seen() -> None:
    seen = Job(Cuda()).steps(MANY).whole_steps()
    assert any({number, number + 1} <= set(seen) for number in range(0, MANY, 2))
    assert any({number, number + 1} <= set(seen) for number in range(1, MANY, 2))


def test_between_two_windows_nothing_listens() -> None:
    job = Job(Cuda()).steps(1)
    assert not job.seams.model.is_used
    job.steps(MANY)
    used = sum(job.steps(1).seams.model.is_used for _ in range(MANY))
    assert 0 < used < MANY / 4


def test_times_are_in_order_and_belong_to_their_events() -> None:
    job = Job(Cuda()).steps(MANY)
    times = job.clock.times(job.events)
    assert times.ms[0] == 0
    assert times.event == sorted(set(times.event))
    assert times.ms == sorted(times.ms)
    data = {Kind.DATA_BEGIN, Kind.DATA_END}
    assert not any(job.events.kind[index] in data for index in times.event)


def test_waits_for_the_device_only_when_read() -> None:
    cuda = Cuda()
    job = Job(cuda).steps(MANY)
    assert cuda.now > 0
    assert cuda.waited == 0
    job.clock.times(job.events)
    assert cuda.waited == 1


@pytest.mark.parametrize("cuda", [Cuda(initialized=False), Cuda(capturing=True)])
def test_never_wakes_or_disturbs_the_device(cuda: Cuda) -> None:
    """Nothing may be recorded before the script has begun to use it, or while a graph is made."""
    job = Job(cuda).steps(MANY)
    assert job.clock.times(job.events) == GpuTimes()
    assert (cuda.now, cuda.waited) == (0, 0)


def test_spans_inside_spans_end_where_they_do() -> None:
    """A checkpointed block: a backward pass inside a backward pass."""
    job = Job(Cuda()).steps(50)
    while not job.seams.backward.is_used:
        job.steps(1)
    outer, inner = 10_000_000, 10_001_000
    for time_ns, kind in (
        (outer, Kind.BACKWARD_BEGIN),
        (inner, Kind.BACKWARD_BEGIN),
        (inner + 500, Kind.BACKWARD_END),
        (inner + 900, Kind.BACKWARD_END),
    ):
        job.events.time_ns.append(time_ns)
        job.events.kind.append(kind)
        job.events.key.append(0)
        job.events.n.append(0)
    for _ in (outer, inner):
        for tell in job.seams.backward.before:
            tell((), {})
    for begin in (inner, outer):
        for tell_after in job.seams.backward.after:
            tell_after((), None, begin)
    times = job.clock.times(job.events)
    last = len(job.events)
    assert times.event[-4:] == [last - 4, last - 3, last - 2, last - 1]
    assert times.ms[-4:] == sorted(times.ms[-4:])
