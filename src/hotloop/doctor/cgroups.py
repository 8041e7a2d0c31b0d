"""What a container may use of its machine: the limits of control groups, of both generations.

A process sees all cores and all memory of the machine, whatever it may use of them. Limits hold for
a group and all above it; inside a container the path may name groups that cannot be seen from
there, so whatever is found on the way up counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hotloop.asking import ask


def granted(root: Path, cores: int) -> float | None:
    """Cores' worth of time. None: there are no control groups to be read."""
    quotas, seen = [], False
    for folder in _folders(root, "cpu"):
        seen = True
        quota = ask(lambda folder=folder: _quota(folder))
        if quota is not None:
            quotas.append(quota)
    return min([float(cores), *quotas]) if seen else None


def memory(root: Path, total: int | None, available: int | None) -> tuple[int | None, int | None]:
    """The bytes that we may have, and those of them that are left."""
    for folder in _folders(root, "memory"):
        limit = _number(folder, "memory.max", "memory.limit_in_bytes")
        used = _number(folder, "memory.current", "memory.usage_in_bytes")
        if limit is None or (total is not None and limit >= total):
            continue
        cache = ask(lambda folder=folder: _cache(folder)) or 0  # it is given up when needed
        left = None if used is None else max(0, limit - used + cache)
        total = limit
        available = left if available is None or left is None else min(left, available)
    return total, available


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """Of this process's group and all above it, where they can be seen."""
    lines = ask(lambda: (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()) or []
    for line in lines:
        number, names, path = line.split(":", 2)
        if number == "0":
            base = root / "sys/fs/cgroup"
            if not (base / "cgroup.controllers").exists():
                continue
        elif controller in names.split(","):
            base = root / "sys/fs/cgroup" / controller
        else:
            continue
        group = base / path.lstrip("/")
        yield from (
            folder
            for folder in (group, *group.parents)
            if folder.is_relative_to(base) and folder.is_dir()
        )


def _quota(folder: Path) -> float | None:
    """Cores' worth, or None for no limit: `max 100000`, or -1."""
    newer = folder / "cpu.max"
    if newer.exists():
        quota, period = newer.read_text(encoding="ascii").split()
        return None if quota == "max" else int(quota) / int(period)
    quota_us = int((folder / "cpu.cfs_quota_us").read_text(encoding="ascii"))
    period_us = int((folder / "cpu.cfs_period_us").read_text(encoding="ascii"))
    return None if quota_us <= 0 else quota_us / period_us


def _number(folder: Path, *names: str) -> int | None:
    """Of the first file that there is. None where it says `max`, too."""
    for name in names:
        found = ask(lambda name=name: int((folder / name).read_text(encoding="ascii")))
        if found is not None:
            return int(found)
    return None


def _cache(folder: Path) -> int:
    lines = (folder / "memory.stat").read_text(encoding="ascii").splitlines()
    stat = dict(line.split() for line in lines)
    return int(stat.get("inactive_file") or stat.get("total_inactive_file") or 0)
