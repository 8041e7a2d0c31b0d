"""What can be wrong with a GPU. Each check is a pure function of what was read."""

from __future__ import annotations

from collections.abc import Callable

from hotloop.doctor.check import Check, gib, ok, unknown, warning
from hotloop.doctor.state import GpuState, HostState, Neighbour

FULL_CLOCK = 0.9
"""Of the highest: what a healthy GPU reaches for some moment of a few seconds' work."""
HOT = 5
"""Degrees below the slowdown."""
LITTLE = 0.2
"""Of the memory, free."""
ALARMING = {"hardware slowdown", "heat (software)", "heat (hardware)", "power brake"}
"""A power cap alone is not: full products run into it on a healthy GPU."""
UNDER_LOAD = "hotloop doctor --remeasure puts the GPU to work and looks then."


def clocks(gpu: GpuState, host: HostState) -> Check:
    name = "GPU clock"
    if gpu.sm_clock_max is None:
        return unknown(name, "the driver does not tell the highest clock")
    if gpu.load is None or gpu.load.sm_clock is None:
        now = "?" if gpu.sm_clock is None else gpu.sm_clock
        return unknown(
            name, f"{now} of {gpu.sm_clock_max} MHz at rest, which says little", UNDER_LOAD
        )
    seen = f"{gpu.load.sm_clock} of {gpu.sm_clock_max} MHz under load"
    if gpu.load.sm_clock < FULL_CLOCK * gpu.sm_clock_max:
        return warning(name, seen, "Undo a lock with nvidia-smi -rgc, and look at heat and power.")
    return ok(name, seen)


def application_clocks(gpu: GpuState, host: HostState) -> Check:
    name = "application clocks"
    if gpu.application_clock is None or gpu.application_clock_default is None:
        return unknown(name, "this GPU or driver does not tell")
    seen = f"{gpu.application_clock} MHz, by default {gpu.application_clock_default}"
    if gpu.application_clock < gpu.application_clock_default:
        return warning(name, seen, "Somebody lowered them; nvidia-smi -rac undoes that.")
    return ok(name, seen)


def throttling(gpu: GpuState, host: HostState) -> Check:
    name = "throttling"
    under_load = gpu.load.slowed_by if gpu.load else None
    told = [one for one in (gpu.slowed_by, under_load) if one is not None]
    if not told:
        return unknown(name, "the driver does not tell why it lowers clocks")
    reasons = sorted({reason for one in told for reason in one})
    when = "at rest and under load" if gpu.load else "at rest"
    if not reasons:
        return ok(name, f"none {when}")
    seen = f"{', '.join(reasons)} ({when})"
    if ALARMING & set(reasons):
        return warning(name, seen, "Check cooling, airflow and the power supply.")
    return ok(name, seen)


def temperature(gpu: GpuState, host: HostState) -> Check:
    name = "temperature"
    seen_at_work = gpu.load.temperature if gpu.load else None
    hottest = max((t for t in (gpu.temperature, seen_at_work) if t is not None), default=None)
    if hottest is None:
        return unknown(name, "the driver does not tell")
    if gpu.temperature_slowdown is None:
        return unknown(name, f"{hottest} °C; at which it slows down is not told")
    seen = f"{hottest} °C, slows down at {gpu.temperature_slowdown} °C"
    if hottest >= gpu.temperature_slowdown - HOT:
        return warning(name, seen, "Check cooling and airflow; let it cool before measuring.")
    return ok(name, seen)


def power(gpu: GpuState, host: HostState) -> Check:
    name = "power limit"
    if gpu.power_limit is None or gpu.power_limit_default is None:
        return unknown(name, "the driver does not tell")
    seen = f"{gpu.power_limit:.0f} W, by default {gpu.power_limit_default:.0f} W"
    if gpu.power_limit < gpu.power_limit_default - 1:
        back = f"nvidia-smi -pl {gpu.power_limit_default:.0f}"
        return warning(name, seen, f"Somebody lowered it; {back} undoes that.")
    return ok(name, seen)


def neighbours(gpu: GpuState, host: HostState) -> Check:
    name = "others on the GPU"
    if gpu.neighbours is None:
        return unknown(name, "the driver does not tell")
    if gpu.neighbours:
        seen = ", ".join(_neighbour(one) for one in gpu.neighbours)
        return warning(name, seen, "Times and memory are shared: measure when it is yours alone.")
    return ok(name, "none")


def _neighbour(one: Neighbour) -> str:
    who = f"{one.name} ({one.pid})" if one.name else "a process outside this container"
    return f"{who}, {gib(one.memory)}" if one.memory else who


def free_memory(gpu: GpuState, host: HostState) -> Check:
    name = "GPU memory"
    if gpu.memory_total is None or gpu.memory_used is None:
        return unknown(name, "the driver does not tell")
    free = gpu.memory_total - gpu.memory_used
    seen = f"{gib(free)} of {gib(gpu.memory_total)} free"
    if free < LITTLE * gpu.memory_total:
        return warning(name, seen, "A job that fits alone may not fit now: see who holds it.")
    return ok(name, seen)


def pcie(gpu: GpuState, host: HostState) -> Check:
    name = "PCIe link"
    width, widest, newest = gpu.pcie_width, gpu.pcie_width_max, gpu.pcie_generation_max
    generation = gpu.load.pcie_generation if gpu.load else gpu.pcie_generation
    if width is None or widest is None or generation is None or newest is None:
        return unknown(name, "the driver does not tell")
    seen = f"generation {generation} of {newest}, {width} of {widest} lanes"
    if width < widest:
        return warning(name, seen, "Reseat the card, or move it to a slot with all its lanes.")
    if generation < newest and gpu.load is None:
        return unknown(name, f"{seen}, at rest, which says little", UNDER_LOAD)
    if generation < newest:
        return warning(name, seen, "Check the slot, the riser and the BIOS's setting for the link.")
    return ok(name, seen)


def placement(gpu: GpuState, host: HostState) -> Check:
    name = "GPU and cores"
    if host.numa_nodes == 1:
        return ok(name, "one NUMA node")
    if not gpu.near_cores or not host.cores:
        return unknown(name, "which cores are near the GPU is not told")
    near = set(gpu.near_cores) & set(host.cores)
    seen = f"{len(near)} of the {len(host.cores)} cores we may use are on the GPU's NUMA node"
    if not near:
        cores = f"{min(gpu.near_cores)}-{max(gpu.near_cores)}"
        return warning(name, seen, f"Run on cores near it: taskset -c {cores} …")
    return ok(name, seen)


GPU_CHECKS: tuple[Callable[[GpuState, HostState], Check], ...] = (
    neighbours,
    free_memory,
    clocks,
    application_clocks,
    throttling,
    temperature,
    power,
    pcie,
    placement,
)
