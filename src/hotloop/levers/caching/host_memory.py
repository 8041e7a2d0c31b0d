"""How much memory a job may still take on its host, as Linux tells it.

A process sees all memory of the machine, whatever its container may use of it. So the limits of
its control group and of all above it count as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

GENERATIONS = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def available(root: Path = Path("/")) -> int | None:
    """In bytes. None where nobody says, as on a Mac."""
    found = [_of_machine(root), *(_left(folder) for folder in _groups(root))]
    return min((one for one in found if one is not None), default=None)


def _of_machine(root: Path) -> int | None:
    kilobytes = _field(root / "proc/meminfo", "MemAvailable:")
    return None if kilobytes is None else 1024 * kilobytes


def _left(folder: Path) -> int | None:
    for limit_name, used_name, cache_name in GENERATIONS:
        limit, used = _number(folder / limit_name), _number(folder / used_name)
        if limit is not None and used is not None:
            cache = _field(folder / "memory.stat", cache_name) or 0  # it is given up when needed
            return max(0, limit - used + cache)
    return None


def _groups(root: Path) -> Iterator[Path]:
    """The folders of our group and of all above it; in a container not all can be seen."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, names, path = line.split(":", 2)
        if number == "0" or "memory" in names.split(","):
            base = root / "sys/fs/cgroup" / ("" if number == "0" else "memory")
            group = base / path.lstrip("/")
            yield from (one for one in (group, *group.parents) if one.is_relative_to(base))


def _field(path: Path, name: str) -> int | None:
    lines = (line.split() for line in _text(path).splitlines())
    return next((int(words[1]) for words in lines if words[:1] == [name]), None)


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() else None  # "max" is no limit


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
