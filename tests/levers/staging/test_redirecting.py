from __future__ import annotations

import gzip
import inspect
import io
import os
import pickle
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotloop.levers.staging.redirecting import Redirection


@pytest.fixture
def original(tmp_path: Path) -> Path:
    path = tmp_path / "store" / "a.txt"
    path.parent.mkdir()
    path.write_text("original")
    return path


@pytest.fixture
def redirection(original: Path, tmp_path: Path) -> Iterator[Redirection]:
    """The copy holds something else, so that it shows which of them is read."""
    copy = tmp_path / "copy"
    copy.write_text("copied")
    made = Redirection()
    made.add({str(original): str(copy)})
    yield made
    made.end()


def test_whatever_way_python_reads(redirection: Redirection, original: Path) -> None:
    with open(original) as file:
        assert file.read() == "copied" and file.name == str(original)
    assert io.open is open
    with open(str(original), "rb", buffering=0) as raw:
        assert raw.read() == b"copied" and raw.name == str(original)
    with open(file=os.fsencode(original), encoding="ascii") as file:
        assert file.read() == "copied"
    assert original.read_bytes() == b"copied" and original.read_text() == "copied"
    descriptor = os.open(original, os.O_RDONLY)
    assert os.read(descriptor, 9) == b"copied"
    os.close(descriptor)
    assert redirection.reads == 6


def test_however_the_path_is_written(
    redirection: Redirection, original: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(original.parent)
    for path in ("a.txt", "./a.txt", f"{original.parent}/../store/a.txt"):
        with open(path) as file:
            assert file.read() == "copied"


def test_libraries_that_open_by_python(redirection: Redirection, tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    store, ram = tmp_path / "more", tmp_path / "ram"
    for folder, value in ((store, 0.0), (ram, 1.0)):
        folder.mkdir()
        numpy.save(folder / "array.npy", numpy.full(8, value))
        numpy.full(8, value).tofile(folder / "plain.bin")
        with zipfile.ZipFile(folder / "a.zip", "w") as packed:
            packed.writestr("value", str(value))
        with gzip.open(folder / "a.gz", "wt") as zipped:
            zipped.write(str(value))
    names = os.listdir(store)
    redirection.add({str(store / name): str(ram / name) for name in names})
    assert numpy.load(store / "array.npy")[0] == 1
    assert numpy.load(store / "array.npy", mmap_mode="r")[0] == 1
    assert numpy.memmap(store / "plain.bin", mode="r")[6] == numpy.memmap(ram / "plain.bin")[6]
    assert numpy.fromfile(store / "plain.bin")[0] == 1
    assert zipfile.ZipFile(store / "a.zip").read("value") == b"1.0"
    with gzip.open(store / "a.gz") as unzipped:
        assert unzipped.read() == b"1.0"


@pytest.mark.parametrize("mode", ["w", "a", "r+", "rb+"])
def test_what_is_written_to_is_the_original(
    redirection: Redirection, original: Path, mode: str
) -> None:
    with open(original, mode) as file:
        file.write(b"written" if "b" in mode else "written")
    assert "written" in original.read_text()
    assert redirection.reads == 0


def test_what_is_replaced_or_deleted_is_the_original(
    redirection: Redirection, original: Path
) -> None:
    new = original.with_name("new")
    new.write_text("new")
    os.replace(src=new, dst=original)
    assert original.read_text() == "new"
    original.unlink()
    with pytest.raises(FileNotFoundError):
        original.read_text()


def test_all_processes_know_what_is_written_and_count(
    redirection: Redirection, original: Path
) -> None:
    pid = os.fork()
    if not pid:
        assert original.read_text() == "copied"
        original.write_text("by the other")
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert redirection.reads == 1
    assert original.read_text() == "by the other"


def test_a_copy_that_is_gone(redirection: Redirection, original: Path, tmp_path: Path) -> None:
    (tmp_path / "copy").unlink()
    assert original.read_text() == "original"
    assert redirection.reads == 0


def test_all_else_is_as_it_was(redirection: Redirection, tmp_path: Path, original: Path) -> None:
    other = tmp_path / "other"
    with open(other, "w") as file:
        file.write("text")
    assert other.read_text() == "text"
    with open(os.open(other, os.O_RDONLY)) as file:
        assert file.read() == "text"
    with open(original, opener=lambda path, flags: os.open(other, flags)) as file:
        assert file.read() == "text"
    for wrong in (3.5, None, "a\0b"):
        with pytest.raises((TypeError, ValueError)):
            open(wrong)  # type: ignore[arg-type]  # noqa: SIM115
    with pytest.raises(FileNotFoundError) as missing:
        (tmp_path / "none").read_text()
    assert missing.value.filename == str(tmp_path / "none")
    shutil.rmtree(original.parent)


def test_it_looks_like_what_it_stands_for(redirection: Redirection) -> None:
    assert open.__name__ == "open" and io.open is open
    assert open is not inspect.unwrap(open)
    assert "encoding" in inspect.signature(open).parameters
    for function in (open, os.open, os.replace):
        assert pickle.loads(pickle.dumps(function)) is function


def test_it_is_put_back(redirection: Redirection, original: Path) -> None:
    ours = open
    assert original.read_text() == "copied"
    redirection.end()
    assert open is not ours and io.open is open and not hasattr(os.open, "__wrapped__")
    assert original.read_text() == "original"
    with ours(original) as file:  # whoever has kept it
        assert file.read() == "original"
    assert redirection.reads == 1
