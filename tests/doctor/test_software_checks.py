from __future__ import annotations

from typing import Any

import pytest

from hotloop.doctor.check import Status
from hotloop.doctor.software_checks import driver_and_torch
from hotloop.installed import Installed
from tests.doctor.states import host, state

CPU_BUILD = Installed("3.12.1", "2.11.0+cpu", None)
NO_GPU = {"gpu": None, "driver": None, "driver_cuda": None}


@pytest.mark.parametrize(
    ("changes", "status", "says"),
    [
        ({}, Status.OK, "driver 580.1 for up to 13.0"),
        ({"driver_cuda": "13.2"}, Status.OK, "13.2"),
        ({"driver_cuda": "12.8"}, Status.WARNING, "torch 2.11.0 for CUDA 13.0"),
        ({"installed": Installed("3", "2", "13.2")}, Status.OK, "CUDA 13.2"),
        ({"driver_cuda": None}, Status.UNKNOWN, "not told"),
        ({"installed": CPU_BUILD}, Status.WARNING, "knows no CUDA, beside a NVIDIA H200"),
        ({"installed": Installed()}, Status.UNKNOWN, "does not run"),
        ({"installed": Installed("3.12.1")}, Status.WARNING, "no torch"),
        ({"installed": Installed("3", "2", None, "6.2")}, Status.UNKNOWN, "ROCm 6.2"),
        ({"hidden": True, **NO_GPU}, Status.OK, "hides all GPUs"),
        (NO_GPU, Status.WARNING, "no driver that answers"),
        ({**NO_GPU, "host": host(nvidia_on_bus=False)}, Status.OK, "it runs on the CPU"),
        ({**NO_GPU, "host": host(nvidia_on_bus=None)}, Status.UNKNOWN, "cannot be read"),
        (
            {**NO_GPU, "host": host(nvidia_on_bus=None), "installed": CPU_BUILD},
            Status.OK,
            "for CPUs, and no GPU",
        ),
    ],
)
def test_driver_and_torch(changes: Any, status: Status, says: str) -> None:
    found = driver_and_torch(state(**changes))
    assert found.status is status
    assert says in found.evidence
    assert bool(found.remedy) or status is not Status.WARNING
