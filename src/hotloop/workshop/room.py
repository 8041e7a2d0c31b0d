"""How much of a machine an examined trial needs, so that several may run side by side.

Of a job on a GPU alone: while one of its processes starts, or compiles, the GPU has time for
others. On a CPU they would take each other's cores.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hotloop.doctor import cgroups
from hotloop.levers.caching.host_memory import available
from hotloop.measurement import Measurement
from hotloop.plan import Plan
from hotloop.trial.spec import Exam

ALL = 1.0
CORES = 4
"""For the process itself, beside its loader's workers: compilers use several."""
WITH_NOISE, WITHOUT = 3.0, 1.3
"""Times the GPU memory of the job as it is. Noise in every operation is kept for the way back."""
STATES = 3
"""Times what is learned, on the host: the reference's, the trial's own, and what it began with."""
USABLE = 0.85


@dataclass(frozen=True)
class Asked:
    """A trial that is going to be examined."""

    plan: Plan
    exam: Exam
    purpose: str
    share: float
    """Of the machine, which it needs."""


@dataclass(frozen=True)
class Host:
    """What this process may use of its machine."""

    cores: float
    memory: int | None
    """Bytes that are free."""


def this_host(cores: int) -> Host:
    """`cores`: those that it sees. A container may grant less of them, and of the memory."""
    root = Path("/")
    return Host(cgroups.granted(root, cores) or cores, available(root))


def share(host: Host, job: Measurement, with_noise: bool) -> float:
    """ALL: it has to be alone, or nothing is known of it."""
    memory = job.memory
    device, resident = memory.device_peak_reserved, memory.host_peak
    if device is None or memory.device_total is None or resident is None or host.memory is None:
        return ALL
    learned = sum(part or 0 for part in (memory.weights, memory.gradients, memory.optimizer))
    beside = sum(memory.worker_peaks)
    workers = sum(one.workers for one in job.inventory.loaders)
    needs = (
        device * (WITH_NOISE if with_noise else WITHOUT) / (USABLE * memory.device_total),
        (resident + beside + STATES * learned) / (USABLE * max(host.memory, 1)),
        (CORES + workers) / host.cores,
    )
    return min(ALL, max(needs))
