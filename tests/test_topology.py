from __future__ import annotations

import os
from pathlib import Path

import pytest

from hotloop import topology
from hotloop.topology import gpu_nodes, nodes, numbers, physical_cores


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text + "\n")


@pytest.fixture(autouse=True)
def six_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology, "allowed", lambda: frozenset(range(6)))


def test_lists_as_the_kernel_writes_them() -> None:
    assert numbers("0-3,8") == {0, 1, 2, 3, 8}
    assert numbers("") == numbers("none") == frozenset()


def test_nodes_with_the_cores_that_may_be_used(tmp_path: Path) -> None:
    for number, cores in enumerate(("0-3", "4-7", "8-11", "")):
        write(tmp_path / f"node/node{number}", cpulist=cores)
    assert nodes(tmp_path) == {0: {0, 1, 2, 3}, 1: {4, 5}}


def test_cores_that_share_all_that_computes(tmp_path: Path) -> None:
    for core in range(6):
        pair = f"{core % 3},{core % 3 + 3}"
        write(tmp_path / f"cpu/cpu{core}/topology", thread_siblings_list=pair)
    assert physical_cores(tmp_path) == 3


def test_where_the_system_does_not_say(tmp_path: Path) -> None:
    assert nodes(tmp_path) == {}
    assert gpu_nodes(tmp_path) == {}
    assert physical_cores(tmp_path) is None


def test_gpus_among_the_devices(tmp_path: Path) -> None:
    gpu = {"vendor": "0x10de", "class": "0x030200"}
    write(tmp_path / "0000:9a:00.0", **gpu, numa_node="1")
    write(tmp_path / "0000:18:00.0", **gpu, numa_node="-1")
    write(tmp_path / "0000:18:00.1", vendor="0x10de", **{"class": "0x040300"}, numa_node="0")
    write(tmp_path / "0000:01:00.0", vendor="0x8086", **{"class": "0x030000"}, numa_node="0")
    write(tmp_path / "0000:b0:00.0", **gpu)
    assert gpu_nodes(tmp_path) == {"0000:18:00.0": -1, "0000:9a:00.0": 1, "0000:b0:00.0": -1}


def test_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("this system does not say")
    found = nodes()
    assert frozenset().union(*found.values()) <= topology.allowed()
    assert 1 <= (physical_cores() or 1) <= len(topology.allowed())
