from __future__ import annotations

from hotloop.disk import DiskRead
from hotloop.doctor.check import Status
from hotloop.doctor.disk_checks import disk


def test_a_quick_disk() -> None:
    found = disk(DiskRead("data", 1, 2**28, 2.5e9))
    assert (found.name, found.status) == ("disk of data", Status.OK)
    assert found.evidence == "2,500 MB/s to one reader (256 MiB in 1 file)"


def test_a_slow_one() -> None:
    found = disk(DiskRead("data", 20, 2**25, 40e6))
    assert found.status is Status.WARNING
    assert found.remedy


def test_small_files_make_no_disk_slow() -> None:
    assert disk(DiskRead("data", 3000, 2**24, 40e6)).status is Status.OK


def test_too_little_to_say() -> None:
    found = disk(DiskRead("data", 3, 100))
    assert found.status is Status.UNKNOWN
    assert "hotloop doctor PATH" in found.remedy
