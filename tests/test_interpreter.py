from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

from hotloop import interpreter
from hotloop.errors import InterpreterNotFound, TorchNotFound


def program(path: Path, text: str = "#!/bin/sh\nexit 0\n") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def nothing_active(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(variable, raising=False)


class TestFind:
    def test_what_was_asked_for(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        python = program(tmp_path / "bin" / "python3.99")
        assert interpreter.find(python) == python
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        assert interpreter.find("python3.99") == python

    @pytest.mark.parametrize("wanted", ["", "/no/such/python", "no-such-python"])
    def test_what_is_not_there(self, wanted: str) -> None:
        with pytest.raises(InterpreterNotFound) as caught:
            interpreter.find(wanted)
        assert "--python" in caught.value.remedy

    @pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
    def test_the_active_environment(
        self, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        python = program(tmp_path / "bin" / "python")
        monkeypatch.setenv(variable, str(tmp_path))
        assert interpreter.find(None) == python

    def test_a_virtual_environment_before_condas(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        python = program(tmp_path / "venv" / "bin" / "python")
        program(tmp_path / "conda" / "bin" / "python")
        monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "venv"))
        monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "conda"))
        assert interpreter.find(None) == python

    def test_an_environment_that_was_deleted_is_passed_over(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "deleted"))
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
        assert interpreter.find(None) == sys.executable

    def test_the_paths_when_ours_has_no_torch(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        monkeypatch.setenv("PATH", str(tmp_path))
        assert interpreter.find(None) == sys.executable
        python3 = program(tmp_path / "python3")
        assert interpreter.find(None) == python3
        python = program(tmp_path / "python")
        assert interpreter.find(None) == python


class TestRequireTorch:
    @pytest.fixture
    def bare(self, tmp_path: Path) -> str:
        """A Python without third parties."""
        python = shutil.which(sys.executable)
        return program(tmp_path / "bin" / "bare", f'#!/bin/sh\nexec {python} -I -S "$@"\n')

    def test_is_content_with_a_torch_that_is_there(self, tmp_path: Path) -> None:
        (tmp_path / "torch.py").write_text("raise SystemExit('imported')")
        interpreter.require_torch(sys.executable, str(tmp_path))

    def test_misses_one(self, bare: str, tmp_path: Path) -> None:
        with pytest.raises(TorchNotFound, match="no torch in"):
            interpreter.require_torch(bare, str(tmp_path))

    def test_what_does_not_run(self, tmp_path: Path) -> None:
        broken = program(tmp_path / "python", "#!/no/such/interpreter\n")
        with pytest.raises(InterpreterNotFound, match="does not run"):
            interpreter.require_torch(broken, str(tmp_path))
