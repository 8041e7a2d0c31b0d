from __future__ import annotations

import os
from pathlib import Path

import pytest

from hotloop import disk


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "LEAST_BYTES", 2**16)
    monkeypatch.setattr(disk, "ENOUGH_BYTES", 2**20)


def write(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(os.urandom(size))
        os.fsync(file.fileno())  # what is not on the disk yet cannot leave the cache


def test_files_are_read_as_they_lie_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_forgotten", lambda file: True)
    write(tmp_path / "a.bin", 2**16)
    write(tmp_path / "inner" / "b.bin", 2**15)
    found = disk.read(str(tmp_path))
    assert (found.files, found.size) == (2, 2**16 + 2**15)
    assert found.rate is not None and found.rate > 0


def test_no_more_is_read_than_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_forgotten", lambda file: True)
    for number in range(4):
        write(tmp_path / f"{number}.bin", 2**20)
    assert disk.read(str(tmp_path)).files == 1


def test_a_file_may_be_named_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_forgotten", lambda file: True)
    write(tmp_path / "a.bin", 2**17)
    assert disk.read(str(tmp_path / "a.bin")).size == 2**17


def test_too_little_is_unknown(tmp_path: Path) -> None:
    write(tmp_path / "a.bin", 100)
    assert disk.read(str(tmp_path)).rate is None
    assert disk.read(str(tmp_path / "gone")) == disk.DiskRead(str(tmp_path / "gone"))


def test_what_stays_in_the_cache_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "_forgotten", lambda file: False)
    write(tmp_path / "a.bin", 2**18)
    assert disk.read(str(tmp_path)) == disk.DiskRead(str(tmp_path))


def test_what_is_no_file_and_what_is_hidden_is_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    write(tmp_path / ".git" / "pack", 2**18)
    assert disk.read(str(tmp_path)).files == 0


def test_a_file_that_leaves_the_cache_is_back_after_it_was_read(tmp_path: Path) -> None:
    write(tmp_path / "a.bin", 2**18)
    found = disk.read(str(tmp_path))
    if not found.files:
        pytest.skip("this file system keeps its files in memory")
    assert found.size == 2**18
    with (tmp_path / "a.bin").open("rb") as file:
        try:
            assert os.preadv(file.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT) == 1
        except BlockingIOError:
            pytest.skip("something else emptied the cache meanwhile")
