"""Reading a GPU's state through NVML."""

from __future__ import annotations

import os
from typing import Any

from hotloop.asking import ask
from hotloop.doctor.state import GpuLoad, GpuState, Neighbour
from hotloop.nvml import first_visible, hidden, load, text

SM = 1
SLOWDOWN = 1
# nvmlClocksEventReason…, as NVML numbers them. Being idle is no reason worth telling.
REASONS = {
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "heat (software)",
    0x40: "heat (hardware)",
    0x80: "power brake",
    0x100: "display clocks",
}


class GpuReader:
    """Asks the first visible GPU. `state` before it is put to work, `glance` while it works."""

    def __init__(self) -> None:
        self._nvml = nvml = load()
        handle = ask(lambda: nvml.nvmlDeviceGetHandleByIndex(first_visible()))
        self._handle = None if hidden() else handle
        self._glances: list[GpuLoad] = []

    def driver(self) -> str | None:
        version = ask(lambda: self._nvml.nvmlSystemGetDriverVersion())
        return None if version is None else text(version)

    def driver_cuda(self) -> str | None:
        number = ask(lambda: int(self._nvml.nvmlSystemGetCudaDriverVersion()))
        return None if number is None else f"{number // 1000}.{number % 1000 // 10}"

    def state(self) -> GpuState | None:
        if self._handle is None:
            return None
        ask_it = self._ask
        memory = ask_it("MemoryInfo")
        name = ask_it("Name")
        return GpuState(
            name=None if name is None else text(name),
            sm_clock=ask_it("ClockInfo", SM),
            sm_clock_max=ask_it("MaxClockInfo", SM),
            application_clock=ask_it("ApplicationsClock", SM),
            application_clock_default=ask_it("DefaultApplicationsClock", SM),
            slowed_by=self._reasons(),
            temperature=ask_it("Temperature", 0),
            temperature_slowdown=ask_it("TemperatureThreshold", SLOWDOWN),
            power_limit=_watts(ask_it("EnforcedPowerLimit")),
            power_limit_default=_watts(ask_it("PowerManagementDefaultLimit")),
            memory_used=ask(lambda: memory.used),
            memory_total=ask(lambda: memory.total),
            neighbours=ask(lambda: _neighbours(self._nvml, self._handle)),
            pcie_generation=ask_it("CurrPcieLinkGeneration"),
            pcie_generation_max=ask_it("MaxPcieLinkGeneration"),
            pcie_width=ask_it("CurrPcieLinkWidth"),
            pcie_width_max=ask_it("MaxPcieLinkWidth"),
            near_cores=self._near_cores(),
        )

    def glance(self) -> None:
        """Cheap enough for many times a second."""
        if self._handle is not None:
            clock, generation = self._ask("ClockInfo", SM), self._ask("CurrPcieLinkGeneration")
            heat, reasons = self._ask("Temperature", 0), self._reasons()
            self._glances.append(GpuLoad(clock, generation, heat, reasons))

    def load(self) -> GpuLoad | None:
        """The most that was seen in all glances. Without one: None."""
        if not self._glances:
            return None
        seen = self._glances
        reasons = [one.slowed_by for one in seen if one.slowed_by is not None]
        return GpuLoad(
            sm_clock=_most([one.sm_clock for one in seen]),
            pcie_generation=_most([one.pcie_generation for one in seen]),
            temperature=_most([one.temperature for one in seen]),
            slowed_by=tuple(sorted({name for one in reasons for name in one})) if reasons else None,
        )

    def _ask(self, what: str, *more: Any) -> Any:
        return ask(lambda: getattr(self._nvml, f"nvmlDeviceGet{what}")(self._handle, *more))

    def _reasons(self) -> tuple[str, ...] | None:
        mask = self._ask("CurrentClocksThrottleReasons")  # the older name: all drivers know it
        if mask is None:
            return None
        return tuple(name for bit, name in REASONS.items() if mask & bit)

    def _near_cores(self) -> tuple[int, ...] | None:
        words = self._ask("CpuAffinity", ((os.cpu_count() or 1) + 63) // 64)
        if words is None:
            return None
        return tuple(
            64 * index + bit
            for index, word in enumerate(words)
            for bit in range(64)
            if word >> bit & 1
        )


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _most(values: list[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _neighbours(nvml: Any, handle: Any) -> tuple[Neighbour, ...]:
    import psutil

    running = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    others = [process for process in running if process.pid != os.getpid()]
    return tuple(
        Neighbour(
            ask(lambda pid=process.pid: psutil.Process(pid).name()),
            process.pid,
            process.usedGpuMemory,
        )
        for process in others
    )
