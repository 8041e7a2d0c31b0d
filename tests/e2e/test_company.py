"""A job that is timed while other programs want the same cores."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import MODEL, Desk

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not Path("/proc/stat").exists(), reason="there is no /proc"),
]

SCRIPT = MODEL + "import time\nfor _ in range(1_000_000):\n    time.sleep(0.03)\n    step()\n"


@pytest.fixture
def others() -> Iterator[None]:
    """Two for every core: whatever else runs, they have a good part of the time."""
    spin = [sys.executable, "-S", "-c", "while True: pass"]
    busy = [subprocess.Popen(spin) for _ in range(2 * len(os.sched_getaffinity(0)))]
    yield
    for process in busy:
        process.kill()
        process.wait()


def test_it_is_said_how_much_of_the_cores_they_took(desk: Desk, others: None) -> None:
    desk.write(SCRIPT)
    ended = desk.profile("--steps", "100", "train.py")
    assert ended.code == 0, ended
    assert "beside it" in ended.out and "of the cores' time" in ended.out
    (trial,) = desk.study()["trials"]
    assert trial["company"]["others"] > 0.3
    shares = [trial["company"][name] for name in ("others", "stolen", "idle")]
    assert sum(shares) <= 1.02
