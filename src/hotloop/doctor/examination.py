"""One visit: the machine, its roof, its state, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hotloop import datasheets, disk, installed, machine, nvml, roofs
from hotloop.datasheets import DataSheet
from hotloop.doctor import host
from hotloop.doctor.check import Check
from hotloop.doctor.disk_checks import disk as disk_check
from hotloop.doctor.gpu import GpuReader
from hotloop.doctor.gpu_checks import GPU_CHECKS
from hotloop.doctor.host_checks import HOST_CHECKS
from hotloop.doctor.software_checks import driver_and_torch
from hotloop.doctor.state import State
from hotloop.machine import Machine
from hotloop.roof import Roof
from hotloop.roof_process import in_a_process


@dataclass(frozen=True)
class Examination:
    machine: Machine
    roof: Roof | None
    """None: without torch, or where its process left nothing."""
    datasheet: DataSheet | None
    state: State
    checks: tuple[Check, ...]


def examine(
    python: str,
    paths: tuple[str, ...],
    *,
    remeasure: bool = False,
    measure: roofs.Measure = in_a_process,
    watch: Callable[[], None] = lambda: None,
    begins: Callable[[], None] = lambda: None,
) -> Examination:
    """The state is read before anything is measured: our own work is nobody's fault."""
    reader = GpuReader()
    before, gpu = host.read(), reader.state()

    def glance() -> None:
        watch()
        reader.glance()

    roof = roofs.of(python, remeasure=remeasure, measure=measure, watch=glance, begins=begins)
    state = State(
        host=before,
        gpu=None if gpu is None else replace(gpu, load=reader.load()),
        hidden=nvml.hidden(),
        driver=reader.driver(),
        driver_cuda=reader.driver_cuda(),
        installed=installed.look(python),
        disks=tuple(disk.read(path) for path in paths),
    )
    if roof is not None and state.disks:
        roof = replace(roof, disk_read=state.disks[0].rate)
    sheet = datasheets.datasheet(roof.device) if roof else None
    return Examination(machine.describe(), roof, sheet, state, checks(state))


def checks(state: State) -> tuple[Check, ...]:
    gpu = state.gpu
    of_gpu = [check(gpu, state.host) for check in GPU_CHECKS] if gpu is not None else []
    of_host = [check(state.host) for check in HOST_CHECKS]
    of_disks = [disk_check(read) for read in state.disks]
    return (driver_and_torch(state), *of_gpu, *of_host, *of_disks)
