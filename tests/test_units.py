from __future__ import annotations

import pytest

from hotloop import units


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0000123, "12 µs"),
        (0.00234, "2.34 ms"),
        (0.0234, "23.4 ms"),
        (1.5, "1.50 s"),
        (42.0, "42.0 s"),
        (119.0, "119.0 s"),
        (600.0, "10.0 min"),
        (9000.0, "2.5 h"),
    ],
)
def test_seconds(value: float, text: str) -> None:
    assert units.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (150 * 2**20, "150 MiB"),
        (3 * 2**29, "1.5 GiB"),
        (5000 * 2**30, "5000 GiB"),
    ],
)
def test_size(value: int, text: str) -> None:
    assert units.size(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(123456.7, "123,457"), (99.94, "99.9"), (3.14159, "3.14"), (0.02, "0.02")]
)
def test_rate(value: float, text: str) -> None:
    assert units.rate(value) == text


def test_count_and_percent() -> None:
    assert units.count(1234567) == "1,234,567"
    assert units.percent(0.1234) == "12.3%"


@pytest.mark.parametrize(("value", "text"), [(2.05e10, "20.5 GB/s"), (4.226e12, "4.23 TB/s")])
def test_throughput(value: float, text: str) -> None:
    assert units.throughput(value) == text
