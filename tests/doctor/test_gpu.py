from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.doctor.gpu import GpuReader
from hotloop.doctor.state import GpuLoad, GpuState, Neighbour
from tests.test_machine import NOBODY, Nvml, install

ANSWERS: dict[str, Any] = {
    "nvmlSystemGetCudaDriverVersion": lambda: 13020,
    "nvmlDeviceGetClockInfo": lambda gpu, kind: 345,
    "nvmlDeviceGetMaxClockInfo": lambda gpu, kind: 1980,
    "nvmlDeviceGetApplicationsClock": lambda gpu, kind: 1500,
    "nvmlDeviceGetDefaultApplicationsClock": lambda gpu, kind: 1980,
    "nvmlDeviceGetCurrentClocksThrottleReasons": lambda gpu: 0x1 | 0x4 | 0x40,
    "nvmlDeviceGetTemperatureThreshold": lambda gpu, kind: 90,
    "nvmlDeviceGetEnforcedPowerLimit": lambda gpu: 500_000,
    "nvmlDeviceGetPowerManagementDefaultLimit": lambda gpu: 700_000,
    "nvmlDeviceGetCurrPcieLinkGeneration": lambda gpu: 1,
    "nvmlDeviceGetMaxPcieLinkGeneration": lambda gpu: 5,
    "nvmlDeviceGetCurrPcieLinkWidth": lambda gpu: 8,
    "nvmlDeviceGetMaxPcieLinkWidth": lambda gpu: 16,
    "nvmlDeviceGetCpuAffinity": lambda gpu, words: [0b101, 0b1],
}


def nvml(**changes: Any) -> Nvml:
    made = Nvml(gpus=1, running=((NOBODY, 2**30),))
    for name, answer in {**ANSWERS, **changes}.items():
        setattr(made, name, answer)
    return made


def test_all_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, nvml())
    reader = GpuReader()
    assert reader.state() == GpuState(
        name="GPU 0",
        sm_clock=345,
        sm_clock_max=1980,
        application_clock=1500,
        application_clock_default=1980,
        slowed_by=("power cap", "heat (hardware)"),
        temperature=50,
        temperature_slowdown=90,
        power_limit=500.0,
        power_limit_default=700.0,
        memory_used=2**30,
        memory_total=80 * 2**30,
        neighbours=(Neighbour(None, NOBODY, 2**30),),
        pcie_generation=1,
        pcie_generation_max=5,
        pcie_width=8,
        pcie_width_max=16,
        near_cores=(0, 2, 64),
    )
    assert (reader.driver(), reader.driver_cuda()) == ("570.1", "13.2")


def test_what_it_does_not_tell_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = Nvml(gpus=1)
    for name in vars(silent).copy():
        if name.startswith("nvmlDeviceGet") and not name.endswith("HandleByIndex"):
            setattr(silent, name, silent.refuse)
    install(monkeypatch, silent)
    assert GpuReader().state() == GpuState()


def test_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, None)
    reader = GpuReader()
    reader.glance()
    assert (reader.state(), reader.load()) == (None, None)
    assert (reader.driver(), reader.driver_cuda()) == (None, None)


def test_one_that_the_job_is_not_to_see(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, nvml(), visible="")
    reader = GpuReader()
    assert reader.state() is None
    assert reader.driver() == "570.1"


def test_at_work_the_most_that_was_seen_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = iter([(345, 1, 0x1), (1980, 5, 0x4), (1700, 4, 0x20)])
    now = SimpleNamespace()
    made = nvml(
        nvmlDeviceGetClockInfo=lambda gpu, kind: now.clock,
        nvmlDeviceGetCurrPcieLinkGeneration=lambda gpu: now.generation,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda gpu: now.reasons,
    )
    install(monkeypatch, made)
    reader = GpuReader()
    assert reader.load() is None
    for now.clock, now.generation, now.reasons in seen:
        reader.glance()
    assert reader.load() == GpuLoad(1980, 5, 50, ("heat (software)", "power cap"))
