"""How a machine stands at a moment, as plain values. What could not be read is None."""

from __future__ import annotations

from dataclasses import dataclass, field

from hotloop.disk import DiskRead
from hotloop.installed import Installed


@dataclass(frozen=True)
class Neighbour:
    """Somebody else's process on the GPU."""

    name: str | None
    """None: it cannot be seen from here, as from inside a container."""
    pid: int
    memory: int | None


@dataclass(frozen=True)
class GpuLoad:
    """Of a GPU at work: at rest its clock and its link are lowered, and say nothing."""

    sm_clock: int | None = None
    """MHz, the highest seen."""
    pcie_generation: int | None = None
    temperature: int | None = None
    slowed_by: tuple[str, ...] | None = None
    """The driver's reasons not to clock higher, all that were seen."""


@dataclass(frozen=True)
class GpuState:
    """The first visible GPU before anything was run on it."""

    name: str | None = None
    sm_clock: int | None = None
    sm_clock_max: int | None = None
    application_clock: int | None = None
    """MHz that somebody has set; equal to the default where nobody did."""
    application_clock_default: int | None = None
    slowed_by: tuple[str, ...] | None = None
    temperature: int | None = None
    temperature_slowdown: int | None = None
    """At which the GPU slows itself down."""
    power_limit: float | None = None
    power_limit_default: float | None = None
    memory_used: int | None = None
    memory_total: int | None = None
    neighbours: tuple[Neighbour, ...] | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    near_cores: tuple[int, ...] | None = None
    """The cores on the GPU's own NUMA node."""
    load: GpuLoad | None = None
    """None: it was not put to work, since its roof is known."""


@dataclass(frozen=True)
class HostState:
    cores: tuple[int, ...] | None = None
    """Those that we may run on."""
    cores_of_machine: int | None = None
    granted: float | None = None
    """Cores' worth of time that the container may use; all of them where nothing limits it."""
    governors: tuple[str, ...] | None = None
    governor_driver: str | None = None
    numa_nodes: int | None = None
    thread_variables: dict[str, str] = field(default_factory=dict)
    """Those that are set."""
    shm_size: int | None = None
    shm_free: int | None = None
    memory: int | None = None
    """Bytes that we may use: of the machine, or of the container where that is less."""
    memory_available: int | None = None
    swap_used: int | None = None
    memory_pressure: float | None = None
    """Percent of the last ten seconds in which some process waited for memory."""
    load: float | None = None
    """Processes that ran or wanted to, on average over the last minute."""
    busy: float | None = None
    """Share of all cores' time that others took while we slept."""
    stolen: float | None = None
    """Share of the time that the host gave to other virtual machines."""
    nvidia_on_bus: bool | None = None
    """Whether an NVIDIA GPU is plugged in, driver or no driver."""


@dataclass(frozen=True)
class State:
    host: HostState
    gpu: GpuState | None
    """None: no driver told of one, or the job is to see none."""
    hidden: bool
    """Whether CUDA_VISIBLE_DEVICES hides all GPUs."""
    driver: str | None
    driver_cuda: str | None
    """The newest CUDA that the driver can serve."""
    installed: Installed
    disks: tuple[DiskRead, ...] = ()
