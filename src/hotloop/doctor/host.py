"""Reading the host's state, mostly from /proc and /sys. `root` is another folder in tests."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hotloop.asking import ask
from hotloop.doctor import cgroups
from hotloop.doctor.state import HostState

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
LOOK_SECONDS = 0.5
NVIDIA = "0x10de"
DISPLAY = ("0x0300", "0x0302")
"""Kinds of PCI device: a graphics card, and one without an output."""


def read(
    root: Path = Path("/"),
    environment: Mapping[str, str] = os.environ,
    look_seconds: float = LOOK_SECONDS,
) -> HostState:
    cores = ask(lambda: tuple(sorted(os.sched_getaffinity(0))))
    info = ask(lambda: _meminfo(root)) or {}
    shm = ask(lambda: os.statvfs(root / "dev" / "shm"))
    busy, stolen = ask(lambda: _busy(look_seconds)) or (None, None)
    memory, available = cgroups.memory(root, info.get("MemTotal"), info.get("MemAvailable"))
    return HostState(
        cores=cores,
        cores_of_machine=os.cpu_count(),
        granted=cgroups.granted(root, len(cores)) if cores else None,
        governors=_governors(root, cores or ()),
        governor_driver=_line(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"),
        numa_nodes=len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or None,
        thread_variables={n: environment[n] for n in THREAD_VARIABLES if environment.get(n)},
        shm_size=shm.f_frsize * shm.f_blocks if shm else None,
        shm_free=shm.f_frsize * shm.f_bavail if shm else None,
        memory=memory,
        memory_available=available,
        swap_used=ask(lambda: info["SwapTotal"] - info["SwapFree"]),
        memory_pressure=ask(lambda: _pressure(root)),
        load=ask(lambda: os.getloadavg()[0]),
        busy=busy,
        stolen=stolen,
        nvidia_on_bus=ask(lambda: _nvidia_on_bus(root)),
    )


def _line(path: Path) -> str | None:
    found = ask(lambda: path.read_text(encoding="ascii").strip())
    return found or None


def _governors(root: Path, cores: tuple[int, ...]) -> tuple[str, ...] | None:
    base = root / "sys/devices/system/cpu"
    found = {_line(base / f"cpu{core}" / "cpufreq" / "scaling_governor") for core in cores}
    return tuple(sorted(name for name in found if name)) or None


def _meminfo(root: Path) -> dict[str, int]:
    lines = (root / "proc/meminfo").read_text(encoding="ascii").splitlines()
    parts = (line.split() for line in lines if line.endswith(" kB"))
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in parts}


def _pressure(root: Path) -> float:
    """`some avg10=0.00 avg60=…`"""
    first = (root / "proc/pressure/memory").read_text(encoding="ascii").splitlines()[0]
    return float(first.split()[1].partition("=")[2])


def _busy(seconds: float) -> tuple[float, float | None]:
    """While we sleep: what is busy then is somebody else's."""
    import psutil

    times: Any = psutil.cpu_times_percent(seconds)
    idle = times.idle + getattr(times, "iowait", 0.0)
    stolen = getattr(times, "steal", None)
    return max(0.0, 100 - idle - (stolen or 0.0)) / 100, None if stolen is None else stolen / 100


def _nvidia_on_bus(root: Path) -> bool:
    devices = list((root / "sys/bus/pci/devices").iterdir())
    return any(
        _line(device / "vendor") == NVIDIA and (_line(device / "class") or "").startswith(DISPLAY)
        for device in devices
    )
