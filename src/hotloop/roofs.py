"""A machine's roof: measured once, then kept in the user's cache.

Kept by all that it depends on: GPU, driver, torch, processor and threads. A roof that was cut off
is handed out but not kept, and one whose file cannot be read is measured again. One that was
measured beside other work is too low: it does until the machine is found quiet.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Protocol

from hotloop import codec, disk, installed, machine, nvml
from hotloop.asking import ask
from hotloop.errors import HotloopError
from hotloop.installed import Installed
from hotloop.machine import Machine
from hotloop.roof import Roof
from hotloop.roof_process import Measured, in_a_process

VERSION = 1
"""Of the way a roof is measured: another way gives other figures."""
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
BUSY = 20.0
"""Percent of all cores, taken by others."""


@dataclass(frozen=True)
class Key:
    """What a roof depends on."""

    gpu: str | None
    driver: str | None
    torch: str
    cpu: str
    threads: tuple[str, ...]
    """The number of cores, and the variables that torch takes its number of threads from."""
    version: int = VERSION

    def file_name(self) -> str:
        return hashlib.sha256(codec.encode(self)).hexdigest()[:24] + ".json"


@dataclass(frozen=True)
class _Kept:
    key: Key
    roof: Roof


class Measure(Protocol):
    """The boundary: a process that measures. `watch` is called many times a second meanwhile."""

    def __call__(self, python: str, watch: Callable[[], None]) -> Measured: ...


def busy(seconds: float = 0.3) -> bool:
    """Whether others keep the cores at work, while we sleep. Where that is not told: no."""
    import psutil

    return bool(ask(lambda: psutil.cpu_percent(seconds) >= BUSY))


def of(
    python: str,
    *,
    folder: str | None = None,
    remeasure: bool = False,
    measure: Measure = in_a_process,
    is_busy: Callable[[], bool] = busy,
    watch: Callable[[], None] = lambda: None,
    begins: Callable[[], None] = lambda: None,
) -> Roof | None:
    """What this machine can do with that interpreter's torch. None: nothing could be measured.

    `folder`: whose disk is read too, which is never kept. `begins` is called when there is
    something to wait for.
    """
    key = key_of(installed.look(python), machine.describe())
    if key is None:
        return None
    path = cache() / key.file_name()
    roof = kept = _kept(path, key)
    if kept is None or remeasure or (kept.disturbed and not is_busy()):
        begins()
        disturbed = is_busy()
        fresh, finished = _measured(python, key, disturbed, measure, watch)
        spoils = disturbed and kept is not None and not kept.disturbed
        if fresh is not None and finished and not spoils:
            _keep(path, _Kept(key, fresh))
        roof = fresh or kept
    if roof is not None and folder is not None:
        roof = replace(roof, disk_read=disk.read(folder).rate)
    return roof


def key_of(found: Installed, host: Machine) -> Key | None:
    """None without torch."""
    if found.torch is None:
        return None
    visible = None if nvml.hidden() else nvml.first_visible()
    seen = visible is not None and visible < len(host.gpus)
    gpu = host.gpus[visible].name if visible is not None and seen else None
    variables = (f"{name}={os.environ.get(name, '')}" for name in THREAD_VARIABLES)
    return Key(gpu, host.driver, found.torch, host.cpu, (str(host.cores), *variables))


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the specification says that such a one is to be ignored
        base = os.path.expanduser("~/.cache")
    if not os.path.isabs(base):  # a user without a home: a place where nothing is, or can be
        base = os.devnull
    return Path(base, "hotloop", "roofs")


def _kept(path: Path, key: Key) -> Roof | None:
    try:
        kept = codec.decode(path.read_bytes(), _Kept)
    except (OSError, ValueError):
        return None
    return kept.roof if kept.key == key else None


def _measured(
    python: str, key: Key, disturbed: bool, measure: Measure, watch: Callable[[], None]
) -> tuple[Roof | None, bool]:
    """And whether what is missing in it cannot be measured here, now or later."""
    measured = measure(python, watch)
    if measured.roof is None:
        return None, False
    today = date.today().isoformat()
    roof = replace(
        measured.roof, driver=key.driver, cpu=key.cpu, measured_on=today, disturbed=disturbed
    )
    gpu_is_missing = key.gpu is not None and not roof.matrix_flops
    return roof, measured.finished and not gpu_is_missing


def _keep(path: Path, kept: _Kept) -> None:
    """A cache that cannot be written is no reason to fail: the roof is measured again next time."""
    with contextlib.suppress(OSError, HotloopError):
        path.parent.mkdir(parents=True, exist_ok=True)
        codec.write(path, asdict(kept))
