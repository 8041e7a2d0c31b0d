from __future__ import annotations

import compileall
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotloop.trial import bytecode


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What was found out of this interpreter, in this process."""
    bytecode.is_missing.cache_clear()
    yield
    bytecode.is_missing.cache_clear()


@pytest.fixture
def torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A torch that comes before any other, fresh from an installer that compiles nothing."""
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('it was only to be looked for')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    return package


def test_source_without_bytecode_is_compiled_at_every_start(torch: Path) -> None:
    assert bytecode.is_missing(sys.executable)


def test_bytecode_beside_it_is_enough(torch: Path) -> None:
    compileall.compile_dir(torch, quiet=1)
    assert not bytecode.is_missing(sys.executable)


def test_bytecode_beside_it_is_not_looked_at_where_the_user_keeps_it_elsewhere(
    torch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compileall.compile_dir(torch, quiet=1)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "elsewhere"))
    assert bytecode.is_missing(sys.executable)


def test_an_interpreter_that_does_not_run_is_another_ones_matter() -> None:
    assert not bytecode.is_missing("/nonexistent/python")
