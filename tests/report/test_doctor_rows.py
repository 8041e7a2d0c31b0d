from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.datasheets import datasheet
from hotloop.doctor.check import Status, ok, unknown, warning
from hotloop.doctor.examination import Examination
from hotloop.machine import Gpu, Machine
from hotloop.report.doctor_rows import bandwidth, flops, rows
from hotloop.roof import Roof
from tests.doctor.states import state

HOST = Machine("Linux 6", "A CPU", 16, 2**37, (Gpu("NVIDIA H200", 140 * 2**30),), "580.1")
ROOF = Roof(
    device="NVIDIA H200",
    torch="2.11.0",
    threads=16,
    measured_on="2030-01-31",
    matrix_flops={"float32": 51e12, "tf32": 389e12, "bfloat16": 742e12},
    memory_bandwidth=4.22e12,
    host_to_device_pinned=55e9,
    launch_seconds=4.2e-6,
    cpu_matrix_flops={"float32": 1.5e12},
    cpu_matrix_flops_one_thread=1e11,
    cpu_memory_bandwidth=2e11,
)
CHECKS = (ok("a", "fine"), unknown("b", "?"), warning("c", "bad", "do"), ok("d", "fine"))


def found(roof: Roof | None = ROOF) -> Examination:
    return Examination(HOST, roof, datasheet("NVIDIA H200"), state(), CHECKS)


def cpu_only() -> Examination:
    roof = replace(ROOF, device="cpu", matrix_flops={}, memory_bandwidth=None)
    host = replace(HOST, gpus=(), driver=None)
    return Examination(host, roof, None, state(gpu=None, driver=None), CHECKS)


def texts(examination: Examination) -> list[str]:
    return [f"{row.label}: {row.text} ({row.note})" for row in rows(examination).roof]


def test_the_roof_beside_the_data_sheet() -> None:
    told = texts(found())
    assert "BF16 products: 742 TFLOP/s (75% of the data sheet's 989 TFLOP/s)" in told
    assert "GPU memory: 4.22 TB/s (88% of the data sheet's 4.8 TB/s)" in told
    assert "launch: 4.2 µs (to queue one operator)" in told
    assert "CPU FP32 products: 1.5 TFLOP/s (16 threads)" in told
    assert "CPU FP32 products: 100 GFLOP/s (one thread)" in told


def test_what_is_not_known_says_so_and_is_not_zero() -> None:
    told = texts(found())
    assert "FP16 products: unknown (data sheet 989 TFLOP/s)" in told
    assert "host to device: 55 GB/s pinned, unknown pageable ()" in told
    assert "CPU BF16 products: unknown (16 threads)" in told
    assert not any(" 0 " in line for line in told)


def test_without_a_roof() -> None:
    made = rows(found(None))
    assert made.roof == ()
    assert "unknown" in made.roof_note


def test_a_roof_that_was_disturbed_says_so() -> None:
    assert "beside other work" in rows(found(replace(ROOF, disturbed=True))).roof_note
    assert "other work" not in rows(found()).roof_note


def test_on_a_cpu_only_its_own_figures_stand() -> None:
    made = rows(cpu_only())
    assert made.title == "A CPU"
    assert all(row.label.startswith(("CPU", "operator")) for row in made.roof)
    assert ("software", "Python 3.12.1, torch 2.11.0") in made.facts


def test_the_machine() -> None:
    made = rows(found())
    assert made.title == "NVIDIA H200"
    assert made.facts == (
        ("host", "A CPU, 16 cores, 128 GiB, Linux 6"),
        ("GPU", "NVIDIA H200, 140 GiB"),
        ("software", "Python 3.12.1, torch 2.11.0, driver 580.1"),
    )


def test_warnings_stand_first_and_are_counted() -> None:
    made = rows(found())
    statuses = [check.status for check in made.checks]
    assert statuses == [Status.WARNING, Status.UNKNOWN, Status.OK, Status.OK]
    assert made.verdict == "1 warning, 1 unknown, 2 in order"
    assert rows(replace(found(), checks=())).verdict == "no warnings, 0 unknown, 0 in order"


@pytest.mark.parametrize(
    ("value", "text"), [(742e12, "742 TFLOP/s"), (1.5e9, "1.5 GFLOP/s"), (2e6, "2 MFLOP/s")]
)
def test_rates(value: float, text: str) -> None:
    assert flops(value) == text
    assert bandwidth(999.0) == "999 B/s"
