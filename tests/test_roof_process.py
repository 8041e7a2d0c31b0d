from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from hotloop.roof_process import Measured, in_a_process

WRITES = """\
import json, os, sys
def write(**values):
    with open(sys.argv[1], "w") as file:
        json.dump(values, file)
"""


def nothing() -> None:
    pass


def program(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "program.py"
    path.write_text(WRITES + text)
    return path


def test_what_it_wrote(tmp_path: Path) -> None:
    text = "write(device='X', threads=3, matrix_flops={'tf32': 1e12}, launch_seconds=None)"
    found = in_a_process(sys.executable, nothing, program=program(tmp_path, text))
    assert found.finished and found.roof is not None
    assert (found.roof.device, found.roof.threads) == ("X", 3)
    assert found.roof.matrix_flops == {"tf32": 1e12}
    assert found.roof.launch_seconds is None


@pytest.mark.parametrize("end", ["os.abort()", "sys.exit(3)"])
def test_what_it_wrote_before_it_crashed(end: str, tmp_path: Path) -> None:
    path = program(tmp_path, f"write(device='X')\n{end}")
    found = in_a_process(sys.executable, nothing, program=path)
    assert found.roof is not None and found.roof.device == "X"
    assert not found.finished


@pytest.mark.parametrize("text", ["", "open(sys.argv[1], 'w').write('{')", "write(device=1)"])
def test_what_cannot_be_read_is_nothing(text: str, tmp_path: Path) -> None:
    assert in_a_process(sys.executable, nothing, program=program(tmp_path, text)).roof is None


def test_no_interpreter(tmp_path: Path) -> None:
    assert in_a_process(str(tmp_path / "python"), nothing) == Measured()


FORKS = """\
write(device='X', threads=os.getpid())
child = os.fork()
if not child:
    os.setsid()
import time
time.sleep(600)
"""


def descendants() -> list[int]:
    return [child.pid for child in psutil.Process().children(recursive=True)]


def test_given_up_after_a_time_with_all_it_started(tmp_path: Path) -> None:
    before = descendants()
    path = program(tmp_path, FORKS)
    found = in_a_process(sys.executable, nothing, limit=1.0, program=path)
    assert found.roof is not None and not found.finished
    marked = [p for p in psutil.process_iter() if str(path) in " ".join(_words(p))]
    deadline = time.monotonic() + 5
    while any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in marked):
        assert time.monotonic() < deadline
    assert descendants() == before


def _words(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def test_an_interruption_leaves_nothing(tmp_path: Path) -> None:
    before = descendants()

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_a_process(sys.executable, interrupt, program=program(tmp_path, FORKS))
    assert descendants() == before


def test_a_variable_that_changes_formats_is_not_handed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")
    path = program(tmp_path, "write(device=os.environ.get('NVIDIA_TF32_OVERRIDE', 'unset'))")
    found = in_a_process(sys.executable, nothing, program=path)
    assert found.roof is not None and found.roof.device == "unset"
    assert os.environ["NVIDIA_TF32_OVERRIDE"] == "1"
