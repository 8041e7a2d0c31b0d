from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hotloop.levers.staging import folders

CHILD = """\
import os, sys, time
from hotloop.levers.staging.folders import Folder
folder = Folder(sys.argv[1])
open(os.path.join(folder.path, "data"), "w").close()
if sys.argv[2] == "forks" and not os.fork():
    time.sleep(60)
print(folder.path, flush=True)
if sys.argv[2] == "waits":
    try:
        os.wait()
    except ChildProcessError:
        sys.exit()
sys.stdin.read()
"""


def gone(path: Path, seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not path.exists()


@pytest.fixture
def ram(tmp_path: Path) -> Path:
    return tmp_path


def start(ram: Path, how: str) -> tuple[subprocess.Popen[str], Path]:
    words = [sys.executable, "-c", CHILD, str(ram), how]
    pipe = subprocess.PIPE
    child = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, start_new_session=True)
    assert child.stdout is not None
    return child, Path(child.stdout.readline().strip())


@pytest.mark.parametrize("how", ["stays", "forks"])
def test_it_goes_with_a_process_that_is_killed(ram: Path, how: str) -> None:
    child, folder = start(ram, how)
    assert (folder / "data").exists()
    child.kill()
    child.wait()
    assert gone(folder)
    if how == "forks":
        os.killpg(child.pid, signal.SIGKILL)


def test_it_goes_with_a_whole_group_that_is_killed(ram: Path) -> None:
    child, folder = start(ram, "stays")
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    assert gone(folder)


def test_it_goes_with_a_process_that_ends(ram: Path) -> None:
    child, folder = start(ram, "stays")
    child.communicate("")
    assert not folder.exists()


def test_who_watches_is_no_child_and_holds_no_stream(ram: Path) -> None:
    child, _ = start(ram, "waits")
    out, _ = child.communicate(timeout=10)  # until everybody has closed its output
    assert (out, child.returncode) == ("", 0)


def test_who_watches_leaves_a_folder_to_who_has_taken_its_lock_away(ram: Path) -> None:
    words = [sys.executable, folders.__file__, str(ram)]
    subprocess.run(words, stdout=subprocess.PIPE, check=True)  # until everybody has closed it
    assert list(ram.iterdir()) == []


def test_what_the_dead_have_left_is_swept(ram: Path) -> None:
    for name in (f"{folders.PREFIX}1-left", f"{folders.PREFIX}{os.getpid()}-left", "another"):
        (ram / name / "deep").mkdir(parents=True)
    mine = folders.Folder(str(ram))
    try:
        folders.sweep(str(ram))  # what is in use stays
        assert {path.name for path in ram.iterdir()} == {"another", Path(mine.path).name}
    finally:
        mine.remove()
    assert [path.name for path in ram.iterdir()] == ["another"]


def test_a_forked_process_does_not_remove_it(ram: Path) -> None:
    mine = folders.Folder(str(ram))
    pid = os.fork()
    if not pid:
        mine.remove()
        os._exit(0)
    os.waitpid(pid, 0)
    folders.sweep(str(ram))
    assert os.path.exists(mine.path)
    mine.remove()


def test_nothing_is_left_where_nobody_can_watch(ram: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(ram / "none"))
    with pytest.raises(OSError):
        folders.Folder(str(ram))
    assert list(ram.iterdir()) == []
