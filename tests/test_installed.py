from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from hotloop.installed import Installed, look

VERSION = "__version__ = '9.9.9+cu130'\ncuda = '13.0'\nhip = None\n"


def test_no_interpreter(tmp_path: Path) -> None:
    assert look(str(tmp_path / "python")) == Installed()


def test_something_else_than_an_interpreter() -> None:
    assert look("/bin/true") == Installed()


@pytest.mark.parametrize("text", [VERSION, "raise SystemExit"])
def test_torch_is_read_and_not_imported(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = tmp_path / "torch"
    torch.mkdir()
    (torch / "__init__.py").write_text("raise RuntimeError('imported')")
    (torch / "version.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = look(sys.executable)
    if text == VERSION:
        assert (found.torch, found.cuda, found.hip) == ("9.9.9+cu130", "13.0", None)
        assert found.python == sys.version.split()[0]
    else:
        assert found == Installed()


def test_a_python_without_torch(tmp_path: Path) -> None:
    """Isolated and without site-packages, there is none."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    os.chmod(python, 0o755)
    assert look(str(python)) == Installed(python=sys.version.split()[0])
