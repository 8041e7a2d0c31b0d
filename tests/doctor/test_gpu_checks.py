from __future__ import annotations

from typing import Any

import pytest

from hotloop.doctor import gpu_checks
from hotloop.doctor.check import Check, Status
from hotloop.doctor.gpu_checks import GPU_CHECKS
from hotloop.doctor.state import GpuLoad, GpuState, Neighbour
from tests.doctor.states import GIB, HOST, gpu, host

BY_NAME = {check.__name__: check for check in GPU_CHECKS}


def check(name: str, on_host: Any = HOST, **changes: Any) -> Check:
    return BY_NAME[name](gpu(**changes), on_host)


@pytest.mark.parametrize("name", BY_NAME)
def test_a_gpu_in_good_order(name: str) -> None:
    assert check(name).status is Status.OK


@pytest.mark.parametrize("name", BY_NAME)
def test_nothing_read_is_unknown(name: str) -> None:
    assert BY_NAME[name](GpuState(), host(numa_nodes=None)).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [
        ("clocks", {"load": GpuLoad(sm_clock=1200)}, "1200 of 1980 MHz under load"),
        ("application_clocks", {"application_clock": 1005}, "1005 MHz, by default 1980"),
        ("throttling", {"slowed_by": ("heat (hardware)",)}, "heat (hardware)"),
        ("throttling", {"load": GpuLoad(slowed_by=("power brake",))}, "power brake"),
        ("temperature", {"temperature": 86}, "86 °C, slows down at 90 °C"),
        ("temperature", {"load": GpuLoad(temperature=88)}, "88 °C"),
        ("power", {"power_limit": 500.0}, "500 W, by default 700 W"),
        ("neighbours", {"neighbours": (Neighbour("python", 7, GIB),)}, "python (7), 1.0 GiB"),
        ("neighbours", {"neighbours": (Neighbour(None, 7, None),)}, "outside this container"),
        ("free_memory", {"memory_used": 130 * GIB}, "10.0 GiB of 140.0 GiB free"),
        ("pcie", {"pcie_width": 8}, "8 of 16 lanes"),
        ("pcie", {"load": GpuLoad(pcie_generation=3)}, "generation 3 of 5"),
        ("placement", {"near_cores": tuple(range(16, 32))}, "0 of the 16 cores"),
    ],
)
def test_what_is_wrong_is_told_with_a_remedy(name: str, changes: Any, says: str) -> None:
    found = check(name, **changes)
    assert found.status is Status.WARNING
    assert says in found.evidence
    assert found.remedy


@pytest.mark.parametrize("name", ["clocks", "pcie"])
def test_at_rest_a_low_clock_and_a_slow_link_say_nothing(name: str) -> None:
    found = check(name, load=None)
    assert found.status is Status.UNKNOWN
    assert "at rest" in found.evidence
    assert "--remeasure" in found.remedy


def test_a_full_link_at_rest_is_one() -> None:
    assert check("pcie", load=None, pcie_generation=5).status is Status.OK


def test_a_power_cap_under_full_load_is_usual() -> None:
    found = gpu_checks.throttling(gpu(), HOST)
    assert (found.status, found.evidence) == (Status.OK, "power cap (at rest and under load)")


def test_on_one_node_all_cores_are_near() -> None:
    assert check("placement", host(numa_nodes=1), near_cores=None).status is Status.OK
