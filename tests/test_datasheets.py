from __future__ import annotations

import pytest

from hotloop.datasheets import datasheet
from hotloop.roof import PRECISIONS


@pytest.mark.parametrize(
    ("name", "sheet"),
    [
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA H200 NVL", "H200 NVL"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB"),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB SXM"),
        ("NVIDIA A100 80GB PCIe", "A100 80GB PCIe"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40S", "L40S"),
        ("Tesla T4", "T4"),
        ("Tesla V100-SXM2-16GB", "V100 SXM"),
        ("Tesla V100-PCIE-32GB", "V100 PCIe"),
        ("NVIDIA GeForce RTX 3090", "RTX 3090"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA B200", "B200"),
    ],
)
def test_by_the_name_that_the_driver_gives(name: str, sheet: str) -> None:
    found = datasheet(name)
    assert found is not None
    assert found.name == sheet


@pytest.mark.parametrize(
    "name",
    [
        "cpu",
        "",
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA L400",
        "AMD Instinct MI300X",
    ],
)
def test_another_device_is_not_taken_for_its_namesake(name: str) -> None:
    assert datasheet(name) is None


@pytest.mark.parametrize(
    "name", ["NVIDIA H200", "NVIDIA L4", "Tesla T4", "NVIDIA GeForce RTX 3090"]
)
def test_peaks_are_plausible(name: str) -> None:
    sheet = datasheet(name)
    assert sheet is not None
    assert set(sheet.matrix_flops) <= set(PRECISIONS)
    assert 1e11 < sheet.memory_bandwidth < 1e13
    assert sheet.matrix_flops["float16"] > sheet.matrix_flops["float32"] > 1e12


def test_a_format_that_the_hardware_lacks_is_missing() -> None:
    sheet = datasheet("Tesla T4")
    assert sheet is not None
    assert set(sheet.matrix_flops) == {"float32", "float16"}
