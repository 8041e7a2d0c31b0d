from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from hotloop.levers.caching import host_memory
from hotloop.levers.caching.kept_items import Unfit
from hotloop.levers.staging import copying
from hotloop.levers.staging.copying import copy_all, to_copy


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, os.stat_result]:
    monkeypatch.setattr(copying, "in_memory", set)
    paths = [tmp_path / "store" / f"{number}.bin" for number in range(40)]
    paths[0].parent.mkdir()
    for number, path in enumerate(paths):
        path.write_bytes(os.urandom(number * 100))
    return {str(path): path.stat() for path in paths}


def soon() -> float:
    return time.monotonic() + 60


def test_the_same_bytes_and_times(files: dict[str, os.stat_result], tmp_path: Path) -> None:
    copied = copy_all(files, str(tmp_path / "ram"), soon())
    assert list(copied.copies) == list(files)
    assert copied.bytes == sum(100 * number for number in range(40))
    for path, copy in copied.copies.items():
        assert Path(copy).read_bytes() == Path(path).read_bytes()
        assert Path(copy).stat().st_mtime_ns == Path(path).stat().st_mtime_ns


def test_more_than_fits(
    files: dict[str, os.stat_result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert to_copy(files, str(tmp_path), 0.5) == files
    monkeypatch.setattr(host_memory, "available", lambda: 2**17)
    with pytest.raises(Unfit, match="would take 0 MiB of memory, and may take 0 MiB"):
        to_copy(files, str(tmp_path), 0.5)
    assert os.listdir(tmp_path) == ["store"]


def test_what_lies_in_memory_stays_there(
    files: dict[str, os.stat_result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = tmp_path.stat().st_dev
    monkeypatch.setattr(copying, "in_memory", lambda: {device})
    with pytest.raises(Unfit, match="the dataset's files lie in memory already"):
        to_copy(files, str(tmp_path), 0.5)
    with pytest.raises(Unfit, match="the dataset names no files"):
        to_copy({}, str(tmp_path), 0.5)


def test_which_devices_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 254:0 / / rw - ext4 /dev/vda rw\n"
        "25 22 0:23 / /dev/shm rw,nosuid shared:3 - tmpfs tmpfs rw\n"
    )
    monkeypatch.setattr(copying, "MOUNTS", mounts)
    assert copying.in_memory() == {os.makedev(0, 23)}
    monkeypatch.setattr(copying, "MOUNTS", tmp_path / "none")
    assert copying.in_memory() == set()


def test_what_takes_too_long_is_removed(
    files: dict[str, os.stat_result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = copying._copy

    def slow(*how: object) -> bool:
        time.sleep(0.02)
        return plain(*how)  # type: ignore[arg-type]

    monkeypatch.setattr(copying, "_copy", slow)
    with pytest.raises(Unfit, match="takes too long"):
        copy_all(files, str(tmp_path / "ram"), time.monotonic() + 0.03)
    assert os.listdir(tmp_path) == ["store"]


def test_a_disk_that_is_full(
    files: dict[str, os.stat_result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **how: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "utime", full)
    with pytest.raises(Unfit, match="could not be copied"):
        copy_all(files, str(tmp_path / "ram"), soon())
    assert os.listdir(tmp_path) == ["store"]


def test_a_file_that_changed_or_went_meanwhile_is_left_out(
    files: dict[str, os.stat_result], tmp_path: Path
) -> None:
    first, second, third, *rest = files
    Path(first).write_text("longer than it was")
    os.utime(second, ns=(0, 0))
    Path(third).unlink()
    copied = copy_all(files, str(tmp_path / "ram"), soon())
    assert list(copied.copies) == rest
    assert not os.path.exists(f"{tmp_path}/ram{first}")
    with pytest.raises(Unfit, match="none of the dataset's files could be copied"):
        copy_all({third: files[third]}, str(tmp_path / "more"), soon())
