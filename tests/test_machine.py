from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from hotloop import machine


class Refused(Exception):
    """NVML's own error."""


class Nvml(ModuleType):
    """As much of pynvml as is asked, for GPUs that are not there. What is in `refused` raises."""

    def __init__(self, gpus: int = 2, refused: frozenset[str] = frozenset()) -> None:
        super().__init__("pynvml")
        self.gpus = gpus
        answers: dict[str, Any] = {
            "nvmlInit": lambda: None,
            "nvmlSystemGetDriverVersion": lambda: b"570.1",
            "nvmlDeviceGetCount": lambda: self.gpus,
            "nvmlDeviceGetHandleByIndex": self.handle,
            "nvmlDeviceGetName": lambda index: f"GPU {index}".encode(),
            "nvmlDeviceGetMemoryInfo": lambda index: SimpleNamespace(total=80 * 2**30, used=2**30),
            "nvmlDeviceGetUtilizationRates": lambda index: SimpleNamespace(gpu=37),
            "nvmlDeviceGetPowerUsage": lambda index: 123_400,
            "nvmlDeviceGetTemperature": lambda index, sensor: 50 + index,
        }
        for name, answer in answers.items():
            setattr(self, name, self.refuse if name in refused else answer)

    def handle(self, index: int) -> int:
        return index if index < self.gpus else self.refuse()

    def refuse(self, *_: Any) -> int:
        raise Refused


def install(monkeypatch: pytest.MonkeyPatch, nvml: Nvml | None, visible: str | None = None) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)


class TestDescribe:
    def test_this_machine(self) -> None:
        found = machine.describe()
        assert found.cores >= 1
        assert found.cpu and found.system
        assert found.memory is None or found.memory > 2**20

    def test_with_gpus(self, monkeypatch: pytest.MonkeyPatch) -> None:
        install(monkeypatch, Nvml())
        found = machine.describe()
        assert found.gpus == tuple(machine.Gpu(f"GPU {i}", 80 * 2**30) for i in range(2))
        assert found.driver == "570.1"

    @pytest.mark.parametrize("nvml", [None, Nvml(refused=frozenset({"nvmlInit"}))])
    def test_without_a_package_or_a_driver(
        self, nvml: Nvml | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        install(monkeypatch, nvml)
        found = machine.describe()
        assert (found.gpus, found.driver) == ((), None)

    @pytest.mark.parametrize(
        "refused",
        [
            "nvmlSystemGetDriverVersion",
            "nvmlDeviceGetCount",
            "nvmlDeviceGetHandleByIndex",
            "nvmlDeviceGetName",
            "nvmlDeviceGetMemoryInfo",
        ],
    )
    def test_a_question_that_is_refused_ends_nothing(
        self, refused: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        install(monkeypatch, Nvml(refused=frozenset({refused})))
        found = machine.describe()
        assert (found.driver is None) == (refused == "nvmlSystemGetDriverVersion")
        assert (found.gpus == ()) == (refused != "nvmlSystemGetDriverVersion")


class TestGpuWatch:
    def test_tells_how_it_is_doing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        install(monkeypatch, Nvml())
        assert machine.GpuWatch().look() == machine.GpuState(37, 2**30, 50, 123.4)

    @pytest.mark.parametrize(
        ("visible", "temperature"), [("1", 51), ("1,0", 51), ("GPU-abc", 50), ("", 50)]
    )
    def test_looks_at_the_first_visible(
        self, visible: str, temperature: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        install(monkeypatch, Nvml(), visible)
        state = machine.GpuWatch().look()
        assert state is not None
        assert state.temperature == temperature

    @pytest.mark.parametrize(
        ("counter", "field"),
        [
            ("nvmlDeviceGetUtilizationRates", "utilisation"),
            ("nvmlDeviceGetMemoryInfo", "memory_used"),
            ("nvmlDeviceGetTemperature", "temperature"),
            ("nvmlDeviceGetPowerUsage", "power_watts"),
        ],
    )
    def test_a_counter_it_lacks_is_unknown(
        self, counter: str, field: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        install(monkeypatch, Nvml(refused=frozenset({counter})))
        state = machine.GpuWatch().look()
        assert [name for name, value in vars(state).items() if value is None] == [field]

    def test_knows_nothing_without_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        install(monkeypatch, None)
        assert machine.GpuWatch().look() is None
        install(monkeypatch, Nvml(gpus=0))
        assert machine.GpuWatch().look() is None

    def test_a_container_may_not_see_the_visible_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        install(monkeypatch, Nvml(gpus=1), visible="7")
        assert machine.GpuWatch().look() is None
