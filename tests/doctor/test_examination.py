from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hotloop.doctor import examination, host
from hotloop.doctor.check import Status
from hotloop.doctor.examination import checks, examine
from hotloop.doctor.gpu_checks import GPU_CHECKS
from hotloop.doctor.host_checks import HOST_CHECKS
from hotloop.installed import Installed
from hotloop.roof import Roof
from hotloop.roof_process import Measured
from tests.doctor.states import HOST, state
from tests.doctor.test_gpu import nvml
from tests.test_machine import install

TORCH = Installed("3.11.7", "2.13.0", "13.0")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("hotloop.installed.look", lambda python: TORCH)
    monkeypatch.setattr(host, "read", lambda: HOST)
    monkeypatch.setattr("psutil.cpu_percent", lambda seconds: 0.0)  # nobody else is at work


def measure(python: str, watch: Callable[[], None]) -> Measured:
    watch()
    return Measured(Roof(device="NVIDIA H200", matrix_flops={"bfloat16": 7e14}), finished=True)


def test_a_machine_in_good_order() -> None:
    found = checks(state())
    assert {check.status for check in found} == {Status.OK}
    assert len(found) == 1 + len(GPU_CHECKS) + len(HOST_CHECKS)
    assert len({check.name for check in found}) == len(found)


def test_without_a_gpu_none_is_checked() -> None:
    assert len(checks(state(gpu=None))) == 1 + len(HOST_CHECKS)


def test_a_gpu_is_seen_at_work_only_when_it_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, nvml())
    loads = []
    for _ in range(2):
        found = examine(sys.executable, (str(tmp_path),), measure=measure)
        assert found.state.gpu is not None
        loads.append(found.state.gpu.load is not None)
        assert found.datasheet is not None and found.datasheet.name == "H200 SXM"
        assert [disk.path for disk in found.state.disks] == [str(tmp_path)]
    assert loads == [True, False]


def test_without_torch_there_is_a_state_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, None)
    monkeypatch.setattr("hotloop.installed.look", lambda python: Installed("3.11.7"))
    found = examination.examine("python", (), measure=measure)
    assert (found.roof, found.datasheet) == (None, None)
    assert found.checks[0].status is Status.WARNING
