"""The hardware a job runs on, and how it is doing. What is not known is None, never zero."""

from __future__ import annotations

import contextlib
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop import topology
from hotloop.asking import ask
from hotloop.nvml import first_visible, hidden, load, text

LITTLE = 0.2
"""Of a GPU's memory. With less of it free, a job that fits alone may not fit now."""


@dataclass(frozen=True)
class Gpu:
    name: str
    memory: int


@dataclass(frozen=True)
class Machine:
    system: str
    cpu: str
    cores: int
    memory: int | None
    gpus: tuple[Gpu, ...]
    driver: str | None
    physical_cores: int | None = None
    """Fewer than the cores where two of those share all that computes."""
    nodes: int = 1
    """NUMA nodes that the cores lie on."""


@dataclass(frozen=True)
class GpuState:
    utilisation: int | None
    """Percent of the last moments in which some kernel ran."""
    memory_used: int | None
    temperature: int | None
    power_watts: float | None
    joules: float | None = None
    """Used since the driver was loaded."""
    sm_clock: int | None = None
    """MHz."""
    throttling: int | None = None
    """Why its clock is not higher: NVML's reasons, a bit each."""


def describe() -> Machine:
    nvml = load()
    return Machine(
        system=f"{platform.system()} {platform.release()}",
        cpu=_cpu_name(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else _count(),
        memory=_memory(),
        gpus=ask(lambda: tuple(_gpus(nvml))) or (),
        driver=ask(lambda: text(nvml.nvmlSystemGetDriverVersion())),
        physical_cores=topology.physical_cores(),
        nodes=max(len(topology.nodes()), 1),
    )


class GpuWatch:
    """Asks the first visible GPU how it is doing. Without NVML it knows nothing and says so."""

    def __init__(self) -> None:
        self._nvml = nvml = load()
        self._handle = ask(lambda: nvml.nvmlDeviceGetHandleByIndex(first_visible()))

    def look(self) -> GpuState | None:
        if self._handle is None:
            return None
        nvml, handle = self._nvml, self._handle
        rates = ask(lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
        memory = ask(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
        milliwatts = ask(lambda: nvml.nvmlDeviceGetPowerUsage(handle))
        millijoules = ask(lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle))
        return GpuState(
            utilisation=rates.gpu if rates else None,
            memory_used=memory.used if memory else None,
            temperature=ask(lambda: nvml.nvmlDeviceGetTemperature(handle, 0)),
            power_watts=milliwatts / 1000 if milliwatts is not None else None,
            joules=millijoules / 1000 if millijoules is not None else None,
            sm_clock=ask(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
            throttling=ask(lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)),
        )


def gpu_neighbours() -> tuple[str, ...]:
    """Who else is on the first visible GPU, one sentence each. Nothing where that is not known."""
    if hidden():
        return ()
    nvml = load()
    handle = ask(lambda: nvml.nvmlDeviceGetHandleByIndex(first_visible()))
    running = ask(lambda: nvml.nvmlDeviceGetComputeRunningProcesses(handle)) or []
    ours = _own_processes()
    memory = ask(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    others = [_neighbour(process) for process in running if process.pid not in ours]
    if memory and memory.total - memory.used < LITTLE * memory.total:
        free, total = _gib(memory.total - memory.used), _gib(memory.total)
        others.append(f"Only {free} of the GPU's {total} are free.")
    return tuple(others)


def _neighbour(process: Any) -> str:
    import psutil

    name = ask(lambda: psutil.Process(process.pid).name())
    who = f"{name} (process {process.pid})" if name else "A process outside this container"
    used = process.usedGpuMemory
    return f"{who} is using the GPU{f', {_gib(used)} of its memory' if used else ''}."


def _own_processes() -> set[int]:
    import psutil

    children = ask(lambda: psutil.Process().children(recursive=True)) or []
    return {os.getpid(), *(child.pid for child in children)}


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def _gpus(nvml: Any) -> list[Gpu]:
    handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
    return [
        Gpu(text(nvml.nvmlDeviceGetName(h)), nvml.nvmlDeviceGetMemoryInfo(h).total) for h in handles
    ]


def _count() -> int:
    return os.cpu_count() or 1


def _cpu_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None
