"""Benchmarks begin searches in folders of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from elsewhere import environment


def test_what_is_found_from_here_is_found_from_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    (tmp_path / "here" / "only_here.py").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"here{os.pathsep}/elsewhere")
    command = [sys.executable, "-c", "import only_here"]
    subprocess.run(command, cwd=tmp_path / "there", env=environment(), check=True)
    expected = [str(tmp_path / "there"), str(tmp_path / "here"), "/elsewhere"]
    assert environment(Path("there"))["PYTHONPATH"].split(os.pathsep) == expected


def test_without_one_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert "PYTHONPATH" not in environment()
