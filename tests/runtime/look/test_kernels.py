from __future__ import annotations

import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from hotloop.runtime.look.kernels import KernelProbe


@dataclass
class Event:
    """As the profiler hands them out: methods, and times since 1970."""

    told: str
    device: str
    after_begin_ns: int
    named: bool = False
    begin: int = 0

    def name(self) -> str:
        return self.told

    def device_type(self) -> str:
        return f"DeviceType.{self.device}"

    def start_ns(self) -> int:
        return self.begin + self.after_begin_ns

    def duration_ns(self) -> int:
        return 5

    def is_user_annotation(self) -> bool:
        return self.named


class Profiler:
    def __init__(self, events: list[Event]) -> None:
        results = SimpleNamespace(events=lambda: events)
        self.profiler = SimpleNamespace(kineto_results=results)
        self.stopped = False

    def start(self) -> None: ...

    def stop(self) -> None:
        self.stopped = True


def fake(events: list[Event]) -> Any:
    made = Profiler(events)
    profiler = SimpleNamespace(
        profile=lambda activities: made, ProfilerActivity=SimpleNamespace(CUDA="cuda")
    )
    return SimpleNamespace(profiler=profiler, cuda=SimpleNamespace(synchronize=lambda: None))


def probed(*events: Event) -> Any:
    probe = KernelProbe(fake(list(events)))
    probe.start()
    probe.begin()
    now = time.time_ns()
    for event in events:
        event.begin = now
    time.sleep(0.03)
    return probe.stop(steps=2)


def test_what_ran_on_the_device_in_order() -> None:
    found = probed(
        Event("gemm", "CUDA", 15_000_000),
        Event("relu", "CUDA", 10_000_000),
        Event("aten::mm", "CPU", 12_000_000),
        Event("my range", "CUDA", 11_000_000, named=True),
        Event("relu", "CUDA", 20_000_000),
        Event("warm-up", "CUDA", -50_000_000),
    )
    assert "warm-up" not in found.names
    assert [found.names[number] for number in found.name] == ["relu", "gemm", "relu"]
    assert found.steps == 2
    assert found.duration_ns == [5, 5, 5]
    begin = found.begin_ns
    assert all(begin <= start <= found.end_ns for start in found.start_ns)
    # The two clocks are read one after the other, on a machine that does other things.
    assert abs(found.start_ns[0] - begin - 10_000_000) < 5_000_000


def test_no_counters_no_kernels() -> None:
    assert probed(Event("aten::mm", "CPU", 1)) is None
