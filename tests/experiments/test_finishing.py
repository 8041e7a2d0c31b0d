from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from hotloop.experiments import finishing


def failure(program: str, limit: float = 60.0, **more: str) -> str:
    environment = {**os.environ, **more}
    return finishing.failure((sys.executable, "-c", program), environment, ".", limit, lambda: None)


def test_one_that_comes_to_its_end() -> None:
    assert failure("print('done')") == ""


def test_its_last_words_say_why_it_did_not() -> None:
    assert failure("raise ValueError('no data')") == "ValueError: no data"
    assert failure("import os; os._exit(3)") == "it ended early"
    assert failure("import os; os.kill(os.getpid(), 4)") == "it was killed by SIGILL"


def test_one_that_takes_too_long_is_given_up() -> None:
    assert failure("import time; time.sleep(100)", limit=0.3) == "it took longer than 0 s"


def test_stopped_nothing_is_left_of_it(tmp_path: Path) -> None:
    """Nor of what it has started, nor of the plan that was written for it."""
    begun, spec = tmp_path / "begun", tmp_path / "hotloop-spec.json"
    spec.touch()
    child = "import time; time.sleep(100)"
    program = (
        "import pathlib, subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True)\n"
        f"pathlib.Path({str(begun)!r}).write_text(str(child.pid))\n"
        "child.wait()\n"
    )

    def stop() -> None:
        if begun.exists() and begun.read_text():
            raise KeyboardInterrupt

    environment = {**os.environ, "HOTLOOP_SPEC": str(spec)}
    with pytest.raises(KeyboardInterrupt):
        finishing.failure((sys.executable, "-c", program), environment, ".", 60.0, stop)
    deadline = time.monotonic() + 5
    while psutil.pid_exists(int(begun.read_text())) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not psutil.pid_exists(int(begun.read_text()))
    assert not spec.exists()
