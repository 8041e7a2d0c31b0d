from __future__ import annotations

import tempfile
from collections.abc import Iterator
from multiprocessing import process, util
from pathlib import Path

import pytest

from hotloop.runtime import temporary


@pytest.fixture
def usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    before = tempfile._sanitize_params  # type: ignore[attr-defined]
    configuration = process.current_process()._config  # type: ignore[attr-defined]
    monkeypatch.setitem(configuration, "tempdir", None)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    room = len(str(tmp_path)) + 80
    monkeypatch.setattr(temporary, "LONGEST", room)
    yield tmp_path
    tempfile._sanitize_params = before  # type: ignore[attr-defined]


def test_what_python_names_goes_with_the_trial(usual: Path) -> None:
    scratch = usual / "hotloop-1"
    scratch.mkdir()
    temporary.keep_apart(str(scratch))
    ours = scratch / temporary.FOLDER
    assert util.get_temp_dir() == str(ours)  # where sockets lie
    assert Path(tempfile.mkdtemp()).parent == ours
    assert Path(tempfile.mkdtemp(prefix=b"one").decode()).parent == ours
    with tempfile.NamedTemporaryFile() as file:
        assert Path(file.name).parent == ours


def test_what_the_script_names_stays_where_it_looks_for_it(
    usual: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    scratch = usual / "hotloop-1"
    scratch.mkdir()
    temporary.keep_apart(str(scratch))
    assert tempfile.gettempdir() == str(usual)
    assert Path(tempfile.mkdtemp(dir=str(usual))).parent == usual
    own = tmp_path_factory.mktemp("own")
    tempfile.tempdir = str(own)
    assert Path(tempfile.mkdtemp()).parent == own


def test_a_socket_still_has_a_name_that_is_short_enough(usual: Path) -> None:
    scratch = usual / ("hotloop-" + "x" * 90)
    scratch.mkdir()
    temporary.keep_apart(str(scratch))
    assert Path(tempfile.mkdtemp()).parent == usual


def test_nothing_goes_where_there_may_be_little_room(
    usual: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    temporary.keep_apart(str(tmp_path_factory.mktemp("memory")))
    assert Path(tempfile.mkdtemp()).parent == usual


def test_a_script_may_still_say_where_temporary_things_go(
    usual: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)  # as in a process that has just begun
    monkeypatch.setenv("TMPDIR", str(usual))
    scratch = usual / "hotloop-1"
    scratch.mkdir()
    temporary.keep_apart(str(scratch))
    large = tmp_path_factory.mktemp("large")
    monkeypatch.setenv("TMPDIR", str(large))
    assert Path(tempfile.mkdtemp()).parent == large
