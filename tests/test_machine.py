from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import psutil
import pytest

from hotloop import machine


class Refused(Exception):
    """NVML's own error."""


class Nvml(ModuleType):
    """As much of pynvml as is asked, for GPUs that are not there. What is in `refused` raises."""

    def __init__(
        self,
        gpus: int = 2,
        refused: frozenset[str] = frozenset(),
        running: tuple[tuple[int, int | None], ...] = (),
        used: int = 2**30,
    ) -> None:
        """`running`: on the last GPU, the number of each process and the bytes it holds."""
        super().__init__("pynvml")
        self.NVML_CLOCK_SM = 1
        self.gpus = gpus
        self.running = running
        answers: dict[str, Any] = {
            "nvmlInit": lambda: None,
            "nvmlSystemGetDriverVersion": lambda: b"570.1",
            "nvmlDeviceGetCount": lambda: self.gpus,
            "nvmlDeviceGetHandleByIndex": self.handle,
            "nvmlDeviceGetName": lambda index: f"GPU {index}".encode(),
            "nvmlDeviceGetMemoryInfo": lambda index: SimpleNamespace(total=80 * 2**30, used=used),
            "nvmlDeviceGetUtilizationRates": lambda index: SimpleNamespace(gpu=37),
            "nvmlDeviceGetPowerUsage": lambda index: 123_400,
            "nvmlDeviceGetTotalEnergyConsumption": lambda index: 5_000_500,
            "nvmlDeviceGetClockInfo": lambda index, clock: 1980,
            "nvmlDeviceGetCurrentClocksThrottleReasons": lambda index: 4,
            "nvmlDeviceGetTemperature": lambda index, sensor: 50 + index,
            "nvmlDeviceGetComputeRunningProcesses": self.processes,
        }
        for name, answer in answers.items():
            setattr(self, name, self.refuse if name in refused else answer)

    def handle(self, index: int) -> int:
        return index if index < self.gpus else self.refuse()

    def processes(self, index: int) -> list[SimpleNamespace]:
        running = self.running if index == self.gpus - 1 else ()
        return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in running]

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
        assert machine.GpuWatch().look() == machine.GpuState(37, 2**30, 50, 123.4, 5_000.5, 1980, 4)

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
            ("nvmlDeviceGetTotalEnergyConsumption", "joules"),
            ("nvmlDeviceGetClockInfo", "sm_clock"),
            ("nvmlDeviceGetCurrentClocksThrottleReasons", "throttling"),
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


NOBODY = 2**22 + 1
"""Larger than any process number that Linux gives."""


class TestGpuNeighbours:
    @pytest.fixture
    def child(self) -> Iterator[int]:
        with subprocess.Popen(["sleep", "600"]) as process:
            yield process.pid
            process.kill()

    def test_another_process_is_named_with_its_memory(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        parent = os.getppid()
        install(monkeypatch, Nvml(gpus=1, running=((parent, 3 * 2**30),)))
        name = psutil.Process(parent).name()
        said = f"{name} (process {parent}) is using the GPU, 3.0 GiB of its memory."
        assert machine.gpu_neighbours() == (said,)

    def test_one_that_cannot_be_seen_is_outside_the_container(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        install(monkeypatch, Nvml(gpus=1, running=((NOBODY, None),)))
        assert machine.gpu_neighbours() == ("A process outside this container is using the GPU.",)

    def test_we_and_what_we_started_are_no_neighbours(
        self, child: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        install(monkeypatch, Nvml(gpus=1, running=((os.getpid(), 2**30), (child, 2**30))))
        assert machine.gpu_neighbours() == ()

    @pytest.mark.parametrize(("visible", "neighbours"), [(None, 0), ("0", 0), ("1", 1), ("1,0", 1)])
    def test_only_the_first_visible_gpu_is_of_interest(
        self, visible: str | None, neighbours: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        install(monkeypatch, Nvml(gpus=2, running=((NOBODY, 2**30),)), visible)
        assert len(machine.gpu_neighbours()) == neighbours

    @pytest.mark.parametrize("visible", ["", "-1"])
    def test_a_job_that_is_to_see_no_gpu_has_no_neighbours(
        self, visible: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        install(monkeypatch, Nvml(gpus=1, running=((NOBODY, 2**30),)), visible)
        assert machine.gpu_neighbours() == ()

    def test_little_free_memory_is_told_whoever_holds_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        install(monkeypatch, Nvml(used=70 * 2**30))
        assert machine.gpu_neighbours() == ("Only 10.0 GiB of the GPU's 80.0 GiB are free.",)
        install(monkeypatch, Nvml(used=60 * 2**30))
        assert machine.gpu_neighbours() == ()

    @pytest.mark.parametrize(
        "nvml",
        [
            None,
            Nvml(gpus=0),
            Nvml(
                refused=frozenset(
                    {"nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetMemoryInfo"}
                )
            ),
        ],
    )
    def test_what_is_not_known_is_not_told(
        self, nvml: Nvml | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        install(monkeypatch, nvml)
        assert machine.gpu_neighbours() == ()
