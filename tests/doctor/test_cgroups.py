from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.doctor import cgroups

GIB = 2**30


def machine(root: Path, cgroup: str, files: dict[str, str]) -> Path:
    for name, text in {"proc/self/cgroup": cgroup, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


TOP = {"sys/fs/cgroup/cgroup.controllers": "cpu memory"}


@pytest.mark.parametrize(
    ("cgroup", "files", "cores"),
    [
        ("0::/\n", TOP, 8.0),
        ("0::/\n", {**TOP, "sys/fs/cgroup/cpu.max": "max 100000\n"}, 8.0),
        ("0::/\n", {**TOP, "sys/fs/cgroup/cpu.max": "250000 100000\n"}, 2.5),
        ("0::/a/b\n", {**TOP, "sys/fs/cgroup/a/cpu.max": "100000 100000\n"}, 1.0),
        ("0::/gone/elsewhere\n", {**TOP, "sys/fs/cgroup/cpu.max": "400000 100000"}, 4.0),
        (
            "1:cpu:/\n0::/\n",
            {
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "150000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            1.5,
        ),
        (
            "4:cpu,cpuacct:/x\n",
            {
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            8.0,
        ),
        ("0::/\n", {**TOP, "sys/fs/cgroup/cpu.max": "3200000 100000\n"}, 8.0),
    ],
)
def test_time_granted(cgroup: str, files: dict[str, str], cores: float, tmp_path: Path) -> None:
    assert cgroups.granted(machine(tmp_path, cgroup, files), 8) == cores


def test_no_groups_is_not_known(tmp_path: Path) -> None:
    assert cgroups.granted(tmp_path, 8) is None
    assert cgroups.granted(machine(tmp_path, "0::/\n", {}), 8) is None


def test_memory_of_a_container(tmp_path: Path) -> None:
    files = {
        **TOP,
        "sys/fs/cgroup/memory.max": str(4 * GIB),
        "sys/fs/cgroup/memory.current": str(3 * GIB),
        "sys/fs/cgroup/memory.stat": f"anon 1\ninactive_file {GIB}\n",
    }
    root = machine(tmp_path, "0::/\n", files)
    assert cgroups.memory(root, 64 * GIB, 60 * GIB) == (4 * GIB, 2 * GIB)


@pytest.mark.parametrize("limit", ["max\n", "9223372036854771712\n"])
def test_memory_without_a_limit(limit: str, tmp_path: Path) -> None:
    root = machine(tmp_path, "0::/\n", {**TOP, "sys/fs/cgroup/memory.max": limit})
    assert cgroups.memory(root, 64 * GIB, 60 * GIB) == (64 * GIB, 60 * GIB)


def test_memory_where_nothing_is_told(tmp_path: Path) -> None:
    assert cgroups.memory(tmp_path, None, None) == (None, None)
