from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from hotloop import processes
from hotloop.measurement import Memory
from hotloop.runtime.probes import memory


def cuda(initialized: bool) -> Any:
    device = SimpleNamespace(
        is_initialized=lambda: initialized,
        max_memory_allocated=lambda: 3,
        max_memory_reserved=lambda: 4,
        current_device=lambda: 1,
        get_device_properties=lambda index: SimpleNamespace(total_memory=100 + index),
    )
    return SimpleNamespace(cuda=device)


def test_the_hosts_peak_is_the_processs_own() -> None:
    peak = memory.host_peak()
    assert peak >= 0.9 * psutil.Process().memory_info().rss
    assert peak <= 1.1 * 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def test_without_proc_the_kernel_is_asked_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(path: Path, **_: Any) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", gone)
    assert memory.host_peak() > 5 * 2**20


@pytest.mark.parametrize("torch", [None, cuda(initialized=False)])
def test_a_device_that_was_not_used_is_unknown(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "host_peak", lambda: 7)
    monkeypatch.setattr(memory, "children_now", lambda: 2)
    assert memory.peak(torch) == Memory(host_peak=7, children_peak=2)


def test_a_child_that_lives_is_seen() -> None:
    """Workers of a short trial may never have met the launcher's look."""
    if not Path("/proc/self/smaps_rollup").exists():
        pytest.skip("nobody says what is shared")
    hold = "own = bytearray(b'x') * 2**25; print(flush=True); input()"
    before = memory.children_now() or 0
    with subprocess.Popen(
        [sys.executable, "-S", "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None and child.stdin is not None
        child.stdout.readline()
        after = memory.children_now()
        child.stdin.close()
    assert after is not None and after - before > 2**25


def test_without_proc_children_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "descendants", lambda pid: None)
    assert memory.children_now() is None


def test_the_devices_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "host_peak", lambda: 7)
    assert memory.peak(cuda(initialized=True)) == Memory(7, 3, 4, 101)
