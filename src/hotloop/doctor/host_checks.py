"""What can be wrong with a host. Each check is a pure function of what was read."""

from __future__ import annotations

from collections.abc import Callable

from hotloop.doctor.check import Check, gib, ok, unknown, warning
from hotloop.doctor.state import HostState

BUSY = 0.2
STOLEN = 0.05
LOAD_PER_CORE = 0.5
LITTLE = 0.1
"""Of the memory, available."""
SWAPPED = 0.05
"""Of the memory's size, in swap."""
PRESSURE = 5.0
"""Percent of the time that some process waited for memory."""
SMALL_SHM = 2**30
"""Docker gives 64 MiB. Workers that hand over a few batches of images need hundreds."""
SLOW_GOVERNORS = {"powersave", "conservative", "userspace"}


def other_work(host: HostState) -> Check:
    name = "other work"
    if host.busy is None:
        return _by_load_alone(name, host)
    parts = [f"{host.busy:.0%} of all cores busy"]
    if host.stolen is not None:
        parts.append(f"{host.stolen:.0%} taken by other virtual machines")
    if host.load is not None:
        parts.append(f"load {host.load:.1f}")
    if host.busy >= BUSY or (host.stolen or 0) >= STOLEN:
        return warning(name, ", ".join(parts), "Measure when it is quiet: intervals will be wide.")
    return ok(name, ", ".join(parts))


def _by_load_alone(name: str, host: HostState) -> Check:
    if host.load is None or not host.cores_of_machine:
        return unknown(name, "how busy the cores are cannot be read")
    seen = f"load {host.load:.1f} on {host.cores_of_machine} cores"
    if host.load >= LOAD_PER_CORE * host.cores_of_machine:
        return warning(name, seen, "Measure when it is quiet: intervals will be wide.")
    return ok(name, seen)


def governor(host: HostState) -> Check:
    name = "CPU governor"
    if not host.governors:
        return unknown(name, "not told here; in a virtual machine the host decides")
    seen = ", ".join(host.governors)
    if host.governor_driver:
        seen += f" ({host.governor_driver})"
    # Drivers that steer by themselves: there, powersave is the usual setting and follows the load.
    steers_itself = (host.governor_driver or "").startswith(
        ("intel_pstate", "amd-pstate", "amd_pstate")
    )
    slow = SLOW_GOVERNORS & set(host.governors) and not steers_itself
    if slow:
        return warning(name, seen, "cpupower frequency-set -g performance")
    return ok(name, seen)


def processors(host: HostState) -> Check:
    name = "cores"
    if not host.cores:
        return unknown(name, "which cores we may use cannot be read")
    cores, seen = len(host.cores), f"{len(host.cores)} of {host.cores_of_machine or '?'} usable"
    if host.granted is None:
        return unknown(name, f"{seen}; whether a container limits their time cannot be read")
    if host.granted < cores:
        seen += f", but time for {host.granted:g}"
        threads = max(1, int(host.granted))
        if _threads(host) is not None and (_threads(host) or 0) <= max(1, host.granted):
            return ok(name, f"{seen}, and threads to match")
        return warning(
            name, seen, f"Set OMP_NUM_THREADS={threads}: more threads wait for each other."
        )
    return ok(name, seen)


def _threads(host: HostState) -> int | None:
    """What torch goes by."""
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        if host.thread_variables.get(variable, "").isdigit():
            return int(host.thread_variables[variable])
    return None


def thread_variables(host: HostState) -> Check:
    name = "thread variables"
    if not host.thread_variables:
        return ok(name, "none set")
    seen = " ".join(f"{key}={value}" for key, value in host.thread_variables.items())
    if not host.cores:
        return unknown(name, f"{seen}; which cores we may use cannot be read")
    cores = max(1, int(min(len(host.cores), host.granted or len(host.cores))))
    numbers = [int(value) for value in host.thread_variables.values() if value.isdigit()]
    if len(numbers) < len(host.thread_variables):
        return warning(name, seen, "One is not a number: unset it, or correct it.")
    if max(numbers) > cores:
        return warning(
            name, f"{seen}, on {cores} cores", f"At most {cores}: more get in each other's way."
        )
    if min(numbers) < cores / 2:
        remedy = "Unset it, unless it is meant: operators on the CPU leave cores idle."
        return warning(name, f"{seen}, on {cores} cores", remedy)
    return ok(name, seen)


def shared_memory(host: HostState) -> Check:
    name = "/dev/shm"
    if host.shm_size is None or host.shm_free is None:
        return unknown(name, "its size cannot be read")
    seen = f"{gib(host.shm_free)} of {gib(host.shm_size)} free"
    if host.shm_free < SMALL_SHM:
        remedy = "Loader workers hand batches over in it: docker run --shm-size=8g, or --ipc=host."
        return warning(name, seen, remedy)
    return ok(name, seen)


def memory(host: HostState) -> Check:
    name = "memory"
    if not host.memory or host.memory_available is None:
        return unknown(name, "how much is left cannot be read")
    parts = [f"{gib(host.memory_available)} of {gib(host.memory)} available"]
    if host.swap_used:
        parts.append(f"{gib(host.swap_used)} in swap")
    if host.memory_pressure:
        parts.append(f"{host.memory_pressure:.0f}% of the time waited for")
    short = host.memory_available < LITTLE * host.memory
    swapped = (host.swap_used or 0) > SWAPPED * host.memory
    if short or swapped or (host.memory_pressure or 0) >= PRESSURE:
        return warning(
            name, ", ".join(parts), "End what else holds memory: waiting for it takes time."
        )
    return ok(name, ", ".join(parts))


HOST_CHECKS: tuple[Callable[[HostState], Check], ...] = (
    other_work,
    memory,
    shared_memory,
    processors,
    thread_variables,
    governor,
)
