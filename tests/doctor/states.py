"""A machine in good order, to be spoilt in one place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hotloop.doctor.state import GpuLoad, GpuState, HostState, State
from hotloop.installed import Installed

GIB = 2**30

HOST = HostState(
    cores=tuple(range(16)),
    cores_of_machine=16,
    granted=16.0,
    governors=("performance",),
    governor_driver="acpi-cpufreq",
    numa_nodes=2,
    shm_size=64 * GIB,
    shm_free=64 * GIB,
    memory=128 * GIB,
    memory_available=120 * GIB,
    swap_used=0,
    memory_pressure=0.0,
    load=0.2,
    busy=0.01,
    stolen=0.0,
    nvidia_on_bus=True,
)

GPU = GpuState(
    name="NVIDIA H200",
    sm_clock=345,
    sm_clock_max=1980,
    application_clock=1980,
    application_clock_default=1980,
    slowed_by=(),
    temperature=35,
    temperature_slowdown=90,
    power_limit=700.0,
    power_limit_default=700.0,
    memory_used=GIB,
    memory_total=140 * GIB,
    neighbours=(),
    pcie_generation=1,
    pcie_generation_max=5,
    pcie_width=16,
    pcie_width_max=16,
    near_cores=tuple(range(8)),
    load=GpuLoad(1980, 5, 50, ("power cap",)),
)


def host(**changes: Any) -> HostState:
    return replace(HOST, **changes)


def gpu(**changes: Any) -> GpuState:
    return replace(GPU, **changes)


def state(**changes: Any) -> State:
    good = State(
        host=HOST,
        gpu=GPU,
        hidden=False,
        driver="580.1",
        driver_cuda="13.0",
        installed=Installed("3.12.1", "2.11.0", "13.0"),
    )
    return replace(good, **changes)
