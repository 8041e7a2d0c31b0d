"""What a GPU's profiler records, made up: kernels belong to operators, ranges are no kernels."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.runtime.deep.tallies import NODE, Tally, ran_kernels


@dataclass
class Event:
    """As much of torch's `FunctionEvent` as is read."""

    name: str
    start: float
    end: float
    cpu_children: list[Event] = field(default_factory=list)
    kernels: list[Any] = field(default_factory=list)
    input_shapes: Any = None
    sequence_nr: int = -1
    thread: int = 1
    fwd_thread: int = 0
    device_type: str = "DeviceType.CPU"
    is_async: bool = False
    cpu_parent: Event | None = None

    def __post_init__(self) -> None:
        for child in self.cpu_children:
            child.cpu_parent = self

    @property
    def time_range(self) -> Any:
        return SimpleNamespace(start=self.start)

    @property
    def cpu_time_total(self) -> float:
        return self.end - self.start

    @property
    def self_cpu_time_total(self) -> float:
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    def flat(self) -> list[Event]:
        return [self] + [event for child in self.cpu_children for event in child.flat()]


def kernel(duration: float, name: str = "gemm") -> Any:
    return SimpleNamespace(name=name, duration=duration)


@pytest.fixture
def recorded() -> list[Event]:
    """A model of one layer, in microseconds; its backward pass on another thread."""
    product = Event("aten::mm", 20, 30, [], [kernel(50)], [[2, 3], [], [3, 4]], sequence_nr=5)
    layer = Event("module: Net.fc (Linear)", 10, 40, [product])
    activation = Event("aten::relu", 50, 55, [], [kernel(4)], [[2, 4]], sequence_nr=6)
    net = Event("module: Net (Net)", 0, 60, [layer, activation])
    net.kernels.append(kernel(70, net.name))  # the range itself, as the GPU saw it
    phase = Event("phase: forward", 0, 65, [net])
    nodes = [
        Event(f"{NODE}: ReluBackward0", 70, 80, [], [kernel(6)], None, 6, 2, 1),
        Event(
            f"{NODE}: MmBackward0",
            80,
            100,
            [Event("aten::mm", 85, 90, [], [kernel(90)], [[4, 2]], 7, 2)],
            [],
            None,
            5,
            2,
            1,
        ),
    ]
    on_device = Event("gemm", 25, 75, device_type="DeviceType.CUDA")
    return [event for outer in (phase, *nodes, on_device) for event in outer.flat()]


def test_kernels_belong_to_the_operators_that_queued_them(recorded: list[Event]) -> None:
    tally = Tally(see_gpu=True)
    tally.add(recorded)
    rows = {(row.name, row.shapes): row for row in tally.operators()}
    assert next(iter(rows)) == ("aten::mm", "[4, 2]")  # the dearest on the GPU
    forward = rows["aten::mm", "[2, 3] [3, 4]"]
    assert (forward.calls, forward.gpu_own, forward.cpu_own) == (1, 50e-6, 10e-6)
    node = rows[f"{NODE}: MmBackward0", ""]
    assert (node.gpu_own, node.gpu_total) == (0, 90e-6)
    assert (node.cpu_own, node.cpu_total) == (15e-6, 20e-6)


def test_modules_have_the_kernels_of_both_passes(recorded: list[Event]) -> None:
    tally = Tally(see_gpu=True)
    tally.add(recorded)
    net, layer = tally.modules()
    assert (net.path, net.kind, layer.path, layer.kind) == ("Net", "Net", "Net.fc", "Linear")
    assert net.forward_gpu == pytest.approx(54e-6)
    assert net.backward_gpu == pytest.approx(96e-6)
    assert (layer.forward_gpu, layer.backward_gpu) == (50e-6, 90e-6)
    assert net.own_gpu == pytest.approx(10e-6)
    assert layer.own_gpu == pytest.approx(140e-6)
    assert (layer.forward_cpu, layer.backward_cpu) == (30e-6, 20e-6)
    assert net.own_cpu == pytest.approx((60 - 30 + 10) * 1e-6)


def test_without_counters_times_are_unknown(recorded: list[Event]) -> None:
    assert ran_kernels(recorded)
    for event in recorded:
        event.kernels.clear()
    assert not ran_kernels(recorded)
    tally = Tally(see_gpu=False)
    tally.add(recorded)
    assert {row.gpu_total for row in tally.operators()} == {None}
    assert {row.own_gpu for row in tally.modules()} == {None}


def test_a_module_inside_itself_counts_once() -> None:
    inner = Event("module: Tree (Tree)", 10, 20)
    outer = Event("module: Tree (Tree)", 0, 40, [inner])
    tally = Tally(see_gpu=False)
    tally.add([outer, inner])
    (row,) = tally.modules()
    assert (row.calls, row.forward_cpu) == (2, 40e-6)
    assert row.own_cpu == pytest.approx(40e-6)
