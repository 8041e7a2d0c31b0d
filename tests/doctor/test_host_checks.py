from __future__ import annotations

from typing import Any

import pytest

from hotloop.doctor.check import Check, Status
from hotloop.doctor.host_checks import HOST_CHECKS
from hotloop.doctor.state import HostState
from tests.doctor.states import GIB, host

BY_NAME = {check.__name__: check for check in HOST_CHECKS}
OMP = "OMP_NUM_THREADS"


def check(name: str, **changes: Any) -> Check:
    return BY_NAME[name](host(**changes))


@pytest.mark.parametrize("name", BY_NAME)
def test_a_host_in_good_order(name: str) -> None:
    assert check(name).status is Status.OK


@pytest.mark.parametrize("name", sorted(set(BY_NAME) - {"thread_variables"}))
def test_nothing_read_is_unknown(name: str) -> None:
    assert BY_NAME[name](HostState()).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [
        ("other_work", {"busy": 0.5}, "50% of all cores busy"),
        ("other_work", {"stolen": 0.1}, "10% taken by other virtual machines"),
        ("other_work", {"busy": None, "load": 12.0}, "load 12.0 on 16 cores"),
        ("governor", {"governors": ("performance", "powersave")}, "powersave"),
        ("processors", {"granted": 4.0}, "16 of 16 usable, but time for 4"),
        ("thread_variables", {"thread_variables": {OMP: "32"}}, "OMP_NUM_THREADS=32, on 16 cores"),
        ("thread_variables", {"thread_variables": {OMP: "1"}}, "OMP_NUM_THREADS=1, on 16 cores"),
        ("thread_variables", {"thread_variables": {OMP: "many"}}, "OMP_NUM_THREADS=many"),
        ("shared_memory", {"shm_size": 2**26, "shm_free": 2**26}, "64 MiB of 64 MiB free"),
        ("shared_memory", {"shm_free": 2**20}, "1 MiB of 64.0 GiB free"),
        ("memory", {"memory_available": 2 * GIB}, "2.0 GiB of 128.0 GiB available"),
        ("memory", {"swap_used": 20 * GIB}, "20.0 GiB in swap"),
        ("memory", {"memory_pressure": 30.0}, "30% of the time waited for"),
    ],
)
def test_what_is_wrong_is_told_with_a_remedy(name: str, changes: Any, says: str) -> None:
    found = check(name, **changes)
    assert found.status is Status.WARNING
    assert says in found.evidence
    assert found.remedy


@pytest.mark.parametrize("driver", ["intel_pstate", "amd-pstate-epp"])
def test_a_driver_that_steers_itself_follows_the_load(driver: str) -> None:
    found = check("governor", governors=("powersave",), governor_driver=driver)
    assert found.status is Status.OK


def test_threads_that_match_a_quota() -> None:
    granted = {"granted": 4.0, "thread_variables": {OMP: "4"}}
    assert check("processors", **granted).status is Status.OK
    assert check("thread_variables", **granted).status is Status.OK


def test_a_little_load_is_no_other_work() -> None:
    assert check("other_work", busy=None, load=1.0).status is Status.OK


def test_variables_on_cores_that_are_not_known() -> None:
    found = check("thread_variables", thread_variables={OMP: "4"}, cores=None)
    assert found.status is Status.UNKNOWN


def test_a_container_that_does_not_tell_its_limits() -> None:
    found = check("processors", granted=None)
    assert found.status is Status.UNKNOWN
    assert "16 of 16 usable" in found.evidence
