"""Segments are a GPU's; elsewhere a pretended torch answers for one."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop import inspection
from hotloop.inspection import Inspection
from hotloop.levers.allocator import VARIABLES, Allocator
from hotloop.measurement import Memory, Software
from hotloop.plan import LeverSetting, Plan
from hotloop.seams import Seams
from tests import builders

OLDER, NEWER = VARIABLES
TRUE = "expandable_segments:True"


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def receipt(*expandable: bool, backend: str = "native", initialized: bool = True) -> Any:
    segments = [{"is_expandable": one, "total_size": 2**21} for one in expandable]
    cuda = SimpleNamespace(
        is_initialized=lambda: initialized,
        get_allocator_backend=lambda: backend,
        memory_snapshot=lambda: segments,
    )
    lever = Allocator()
    lever.apply(SimpleNamespace(cuda=cuda), Seams())
    return lever.receipt()


def test_it_is_set_before_the_process_starts() -> None:
    plan = Plan((LeverSetting("allocator", {}),))
    assert plan.environment() == {OLDER: TRUE}


@pytest.mark.parametrize("name", VARIABLES)
def test_what_the_user_has_set_stays(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "max_split_size_mb:128,")
    assert Allocator().environment() == {name: f"max_split_size_mb:128,{TRUE}"}


@pytest.mark.parametrize("name", VARIABLES)
def test_a_user_who_has_chosen_is_right(
    name: str, jobs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "expandable_segments:False")
    assert Allocator().environment() == {}
    assert Allocator.expected(seen(jobs)).reason == f"{name} already says whether segments grow"


def test_pretended_segments_are_its_receipt(monkeypatch: pytest.MonkeyPatch) -> None:
    found = receipt(True, False, True)
    assert found.evidence == {"segments": 3, "expandable": 2, "bytes": 2**22}
    assert receipt().reason == "nothing is allocated on the GPU"
    assert receipt(False).reason == "the script has replaced the allocator's settings"
    monkeypatch.setenv(OLDER, TRUE)
    assert receipt(False).reason.startswith("no segment can grow")
    assert "cudaMallocAsync" in receipt(True, backend="cudaMallocAsync").reason
    assert receipt(True, initialized=False).reason == "the job does not use a GPU"


def seen(jobs: Any, look: inspection.Allocator | None = None, memory: Any = None) -> Any:
    on_gpu = builders.measurement(software=Software(device=builders.GPU), memory=memory or Memory())
    made = jobs.seen(measurement=on_gpu)
    return replace(made, inspection=Inspection(steps=10, allocator=look)) if look else made


def test_what_it_expects_of_calls_that_were_counted(jobs: Any) -> None:
    def expected(calls: int, retries: int = 0, steps: int = 10) -> Any:
        counted = inspection.Allocator(retries=retries, driver_calls=calls, steps=steps)
        return Allocator.expected(seen(jobs, counted))

    assert expected(10).share == pytest.approx(5 / 20)
    assert expected(10, steps=0).share == pytest.approx(5 / 20)
    assert expected(100, 100).share == 0.5
    assert expected(2).reason == "the driver is asked for memory 0.2 times a step"


def test_what_it_expects_where_nobody_counted(jobs: Any) -> None:
    def expected(reserved: int, allocated: int) -> Any:
        memory = Memory(None, allocated, reserved, device_total=100)
        return Allocator.expected(seen(jobs, memory=memory))

    assert expected(90, 70).is_worth_trying
    assert "50%" in expected(50, 20).reason
    assert "in use" in expected(90, 88).reason
    assert "not measured" in Allocator.expected(seen(jobs)).reason
    assert "GPU" in Allocator.expected(jobs.seen()).reason


@pytest.mark.gpu
def test_on_a_gpu(torch: Any) -> None:
    """In a process of its own: the allocator reads its settings once."""
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    script = (
        "import torch; from hotloop.levers.allocator import Allocator; from hotloop.seams import "
        "Seams; lever = Allocator(); lever.apply(torch, Seams()); x = torch.ones(9, device='cuda');"
        "found = lever.receipt(); assert found.applied, found.reason"
    )
    for variables, code in ((Allocator().environment(), 0), ({}, 1)):
        known = {**os.environ, **variables}
        assert subprocess.run([sys.executable, "-c", script], env=known).returncode == code
