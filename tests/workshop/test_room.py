from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hotloop.doctor import cgroups
from hotloop.measurement import Inventory, Measurement, Memory
from hotloop.workshop import room
from hotloop.workshop.room import ALL, USABLE, Host, share, this_host
from tests import builders

GIB = 2**30
HOST = Host(cores=16, memory=128 * GIB)


def job(workers: int = 0, **memory: Any) -> Measurement:
    known = {"host_peak": GIB, "device_peak_reserved": 10 * GIB, "device_total": 100 * GIB}
    return builders.measurement(
        memory=Memory(**{**known, **memory}),
        inventory=Inventory(loaders=[builders.loader(workers=workers)]),
    )


def test_a_small_job_needs_its_cores() -> None:
    assert share(HOST, job(device_peak_reserved=GIB), with_noise=True) == 4 / 16
    assert share(HOST, job(workers=4), with_noise=False) == 8 / 16


def test_a_large_one_needs_its_memory_and_more_with_noise() -> None:
    large = job(device_peak_reserved=25 * GIB)
    quiet, noisy = (share(HOST, large, with_noise=noise) for noise in (False, True))
    assert quiet == pytest.approx(1.3 * 25 / (USABLE * 100))
    assert noisy == pytest.approx(3 * 25 / (USABLE * 100))


def test_what_is_learned_lies_on_the_host_several_times() -> None:
    parts = {"weights": 6 * GIB, "gradients": 6 * GIB, "optimizer": 12 * GIB}
    assert share(HOST, job(**parts), with_noise=False) == pytest.approx(73 / (USABLE * 128))


@pytest.mark.parametrize(
    "known",
    [
        job(device_peak_reserved=None),
        job(host_peak=None),
        job(device_peak_reserved=90 * GIB),
        job(workers=16),
    ],
)
def test_what_is_not_known_or_too_large_is_alone(known: Measurement) -> None:
    assert share(HOST, known, with_noise=True) == ALL


def test_a_small_machine_has_room_for_one() -> None:
    assert share(Host(2, 8 * GIB), job(), with_noise=False) == ALL
    assert share(Host(16, None), job(), with_noise=False) == ALL


def test_a_container_has_what_it_is_granted(monkeypatch: pytest.MonkeyPatch) -> None:
    def granted(root: Path, cores: int) -> float:
        return min(cores, 6.5)

    monkeypatch.setattr(cgroups, "granted", granted)
    monkeypatch.setattr(room, "available", lambda root: 3 * GIB)
    assert this_host(128) == Host(6.5, 3 * GIB)
    monkeypatch.setattr(cgroups, "granted", lambda root, cores: None)
    assert this_host(128).cores == 128
