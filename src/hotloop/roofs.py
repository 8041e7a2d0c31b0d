"""A machine's roof: measured once, then kept in the user's cache.

Kept by all that it depends on: GPU, driver, torch, processor and threads. A roof that was cut off
is handed out but not kept, and one whose file cannot be read is measured again.
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
from hotloop.errors import HotloopError
from hotloop.installed import Installed
from hotloop.machine import Machine
from hotloop.roof import Roof
from hotloop.roof_process import Measured, in_a_process

VERSION = 1
"""Of the way a roof is measured: another way gives other figures."""
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


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


def of(
    python: str,
    *,
    folder: str | None = None,
    remeasure: bool = False,
    measure: Measure = in_a_process,
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
    roof = None if remeasure else _kept(path, key)
    if roof is None:
        begins()
        roof = _measured(python, key, path, measure, watch)
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
    python: str, key: Key, path: Path, measure: Measure, watch: Callable[[], None]
) -> Roof | None:
    measured = measure(python, watch)
    if measured.roof is None:
        return None
    today = date.today().isoformat()
    roof = replace(measured.roof, driver=key.driver, cpu=key.cpu, measured_on=today)
    gpu_is_missing = key.gpu is not None and not roof.matrix_flops
    if measured.finished and not gpu_is_missing:
        _keep(path, _Kept(key, roof))
    return roof


def _keep(path: Path, kept: _Kept) -> None:
    """A cache that cannot be written is no reason to fail: the roof is measured again next time."""
    with contextlib.suppress(OSError, HotloopError):
        path.parent.mkdir(parents=True, exist_ok=True)
        codec.write(path, asdict(kept))
