from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hotloop.doctor import host
from hotloop.doctor.state import HostState


@pytest.fixture(autouse=True)
def on_two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1}, raising=False)


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def read(root: Path, **environment: str) -> HostState:
    return host.read(root, environment, look_seconds=0.01)


def test_a_whole_machine(tmp_path: Path) -> None:
    cpu = "sys/devices/system/cpu"
    files = {
        "proc/meminfo": "MemTotal: 100 kB\nMemAvailable: 60 kB\nSwapTotal: 9 kB\nSwapFree: 4 kB\n",
        "proc/pressure/memory": "some avg10=7.25 avg60=0.00 avg300=0.00 total=1\nfull avg10=0\n",
        f"{cpu}/cpu0/cpufreq/scaling_governor": "powersave\n",
        f"{cpu}/cpu1/cpufreq/scaling_governor": "performance\n",
        f"{cpu}/cpu2/cpufreq/scaling_governor": "userspace\n",
        f"{cpu}/cpu0/cpufreq/scaling_driver": "intel_pstate\n",
        "sys/devices/system/node/node0/cpulist": "0",
        "sys/devices/system/node/node1/cpulist": "1",
        "sys/bus/pci/devices/0/vendor": "0x10de\n",
        "sys/bus/pci/devices/0/class": "0x030200\n",
        "dev/shm/x": "",
    }
    found = read(write(tmp_path, files), OMP_NUM_THREADS="4", MKL_NUM_THREADS="")
    assert found.cores == (0, 1)
    assert (found.memory, found.memory_available) == (100 * 1024, 60 * 1024)
    assert (found.swap_used, found.memory_pressure) == (5 * 1024, 7.25)
    assert found.governors == ("performance", "powersave")  # of our cores
    assert found.governor_driver == "intel_pstate"
    assert found.numa_nodes == 2
    assert found.thread_variables == {"OMP_NUM_THREADS": "4"}
    assert found.nvidia_on_bus is True
    assert found.shm_size is not None and found.shm_size > 0


def test_where_nothing_can_be_read_nothing_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise OSError

    monkeypatch.setattr(os, "getloadavg", refuse)
    monkeypatch.setattr(os, "sched_getaffinity", refuse)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    monkeypatch.setattr("psutil.cpu_times_percent", refuse)
    assert read(tmp_path) == HostState()


@pytest.mark.parametrize(
    ("vendor", "kind", "there"),
    [("0x10de", "0x030000", True), ("0x10de", "0x040300", False), ("0x8086", "0x030000", False)],
)
def test_a_gpu_on_the_bus(vendor: str, kind: str, there: bool, tmp_path: Path) -> None:
    device = "sys/bus/pci/devices/0000:01:00.0"
    root = write(tmp_path, {f"{device}/vendor": vendor, f"{device}/class": kind})
    assert read(root).nvidia_on_bus is there


def test_this_machine() -> None:
    found = host.read(look_seconds=0.05)
    assert found.cores
    assert found.busy is None or 0 <= found.busy <= 1
    assert found.memory is None or found.memory > 2**20
