"""Where our own files cannot be written, or cannot be read back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path

import pytest

from hotloop.job import ScriptJob
from hotloop.machine import GpuWatch
from hotloop.plan import Plan
from hotloop.trial.launch import _Run
from hotloop.trial.order import Order
from hotloop.trial.power import PowerMeter
from hotloop.trial.scratch import Scratch
from hotloop.trial.spec import StopRule

from .conftest import MODEL, TRAIN, Desk, Ended, cleared

pytestmark = pytest.mark.e2e


def can_mount() -> bool:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    command = ["unshare", "-m", "mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", "/mnt"]
    return subprocess.run(command, capture_output=True).returncode == 0


def on_a_small_disk(desk: Desk, options: str, *words: str) -> Ended:
    """`hotloop profile`, its studies on a file system that holds next to nothing."""
    (desk.project / ".hotloop").mkdir()
    program = str(Path(sys.executable).with_name("hotloop"))
    script = f'mount -t tmpfs -o {options} tmpfs .hotloop && exec "$@"'
    words = ("unshare", "-m", "sh", "-c", script, "sh", program, "profile", "--no-look", *words)
    before = desk.files()
    ended = desk.call(list(words))
    desk.expect_clean(before)
    return ended


@pytest.mark.skipif(not can_mount(), reason="needs root and the right to mount a tmpfs")
class TestNoSpace:
    @pytest.mark.parametrize("pages", [1, 2, 3, 5])
    def test_from_the_start(self, desk: Desk, pages: int) -> None:
        desk.write("print('hello')")
        ended = on_a_small_disk(desk, f"size={4 * pages}k", "train.py")
        ended.expect(94, "No space left on device", remedy="--study")

    @pytest.mark.parametrize("inodes", range(2, 10))
    def test_no_more_files(self, desk: Desk, inodes: int) -> None:
        desk.write("print('hello')")
        ended = on_a_small_disk(desk, f"size=1m,nr_inodes={inodes}", "train.py")
        ended.expect(94, "No space left on device", remedy="--study")

    def test_for_the_result(self, desk: Desk) -> None:
        """Enough to begin with, too little for what was measured."""
        desk.write(TRAIN)
        ended = on_a_small_disk(desk, "size=40k", "--steps", "200", "train.py")
        assert ended.code in (94, 95), ended
        ended.expect(ended.code, "hotloop:", remedy="space" if ended.code == 94 else "disk")
        assert "Traceback" not in ended.err


LIMIT = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
STEPS = "for _ in range(50):\n    step()\n"


def test_the_script_limits_file_sizes(tmp_path: Path, pool: Executor) -> None:
    """So that our result cannot be written: when enough was seen, and at the script's own end."""

    def trial(name: str, script: str) -> tuple[Desk, Ended]:
        (tmp_path / name).mkdir()
        with cleared(tmp_path / name) as desk:
            desk.write(script)
            return desk, desk.profile("--steps", "30", "train.py")

    few = STEPS.replace("50", "20")
    scripts = {"enough": MODEL + LIMIT + STEPS, "end": MODEL + few + LIMIT}
    for future in [pool.submit(trial, *script) for script in scripts.items()]:
        desk, ended = future.result()
        ended.expect(95, "not whole", remedy="disk")
        assert "Traceback" not in ended.err, "the script did nothing wrong"
        assert "Traceback" not in desk.printed()


@pytest.fixture
def scratch() -> Iterator[Scratch]:
    made = Scratch([])
    yield made
    made.remove()


def an_order(folder: Path) -> Order:
    job = ScriptJob("train.py", False, (), sys.executable, str(folder))
    return Order(1, job, Plan(), StopRule(), 1.0, folder)


@pytest.mark.parametrize(
    "text", [b"", b'{"ended": "script", "measu', b"[]", b'{"ended": "no such end"}', b"\0" * 100]
)
def test_a_damaged_result(tmp_path: Path, scratch: Scratch, text: bytes) -> None:
    run = _Run(an_order(tmp_path), scratch, lambda glimpse: None, PowerMeter(GpuWatch()))
    (tmp_path / "result.json").write_bytes(text)
    result, why = run._read_result()
    assert result is None
    assert why


def test_no_result_is_no_damaged_result(tmp_path: Path, scratch: Scratch) -> None:
    run = _Run(an_order(tmp_path), scratch, lambda glimpse: None, PowerMeter(GpuWatch()))
    assert run._read_result() == (None, "")
    (tmp_path / "result.partial").write_bytes(b'{"ended"')
    assert run._read_result() == (None, "it was cut off while being written.")
