from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.levers.caching.host_memory import available

GIB = 2**30


def machine(root: Path, groups: str, **files: str) -> Path:
    told = {
        "proc/meminfo": f"MemTotal: 99 kB\nMemAvailable: {8 * GIB // 1024} kB\n",
        "proc/self/cgroup": groups,
        **files,
    }
    for name, text in told.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def group(path: str, limit: str, used: int, cache: int = 0, first: bool = False) -> dict[str, str]:
    names = ("limit_in_bytes", "usage_in_bytes", "total_") if first else ("max", "current", "")
    return {
        f"sys/fs/cgroup/{path}/memory.{names[0]}": f"{limit}\n",
        f"sys/fs/cgroup/{path}/memory.{names[1]}": f"{used}\n",
        f"sys/fs/cgroup/{path}/memory.stat": f"anon 5\n{names[2]}inactive_file {cache}\n",
    }


def test_a_machine_without_limits(tmp_path: Path) -> None:
    assert available(machine(tmp_path, "0::/user\n", **group("user", "max", 5))) == 8 * GIB


def test_a_container_of_either_generation(tmp_path: Path) -> None:
    second = group("job", str(4 * GIB), 3 * GIB, cache=GIB)
    assert available(machine(tmp_path / "2", "0::/job\n", **second)) == 2 * GIB
    first = group("memory/job", str(4 * GIB), 3 * GIB, first=True)
    assert available(machine(tmp_path / "1", "9:cpu,memory:/job\n", **first)) == GIB


def test_a_limit_above_counts_too(tmp_path: Path) -> None:
    limits = {**group("job", "max", GIB), **group("job/step", str(GIB), 0)}
    limits |= group("", str(GIB // 2), 0)
    assert available(machine(tmp_path, "0::/job/step\n", **limits)) == GIB // 2


def test_where_nobody_says(tmp_path: Path) -> None:
    assert available(tmp_path) is None


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="Linux")
def test_this_machine() -> None:
    assert (available() or 0) > 0
