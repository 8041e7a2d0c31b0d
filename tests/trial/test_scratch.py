from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from hotloop.trial import removing, scratch
from hotloop.trial.reaping import MARK
from hotloop.trial.scratch import Scratch, remove_forgotten


@pytest.fixture(autouse=True)
def usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary things are put."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_it_lies_outside_what_is_protected(
    usual: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path_factory.mktemp("other")
    monkeypatch.setattr(scratch, "ELSEWHERE", (str(other),))
    apart, here = Scratch([str(usual.resolve())]), Scratch([])
    assert apart.path.is_relative_to(other)
    assert here.path.is_relative_to(usual)
    for each in (apart, here):
        each.remove()
        assert not each.path.exists()


def test_in_the_usual_place_where_everything_is_protected() -> None:
    everywhere = Scratch(["/"])
    assert everywhere.path.is_relative_to(tempfile.gettempdir())
    everywhere.remove()


def test_one_whose_owner_was_killed_is_removed_by_the_next(usual: Path) -> None:
    killed = f"""
import os, signal, tempfile
tempfile.tempdir = {str(usual)!r}
from hotloop.trial.scratch import Scratch
made = Scratch([])
(made.path / "enter.json").write_text("secret")
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", killed], check=False)
    (left,) = usual.glob("hotloop-*")
    assert (left / "enter.json").exists()
    remove_forgotten()
    assert not left.exists()


def test_and_what_its_trial_had_started_is_ended(usual: Path) -> None:
    left = Scratch([])
    daemon = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(1000)"],
        env={**os.environ, MARK: left.mark},
        start_new_session=True,
    )
    os.close(left._lock)  # as the kernel does when its owner is killed
    remove_forgotten()
    assert daemon.wait(10) == -signal.SIGKILL
    assert not left.path.exists()


def test_one_that_is_used_is_not(usual: Path) -> None:
    mine = Scratch([])
    remove_forgotten()
    assert mine.path.is_dir()
    mine.remove()


@pytest.mark.parametrize("name", ["hotloop-notes", "hotloop-12345678"])
def test_nor_what_only_looks_like_one(usual: Path, name: str) -> None:
    (usual / name).mkdir()
    (usual / name / scratch.LOCK).write_text("mine")
    (usual / name / "data").touch()
    remove_forgotten()
    assert (usual / name / "data").exists()


def test_nor_what_a_link_leads_to(usual: Path) -> None:
    real = usual / "elsewhere"
    real.mkdir()
    (real / scratch.LOCK).write_text(f"{scratch._sign()}abc")
    (usual / "hotloop-12345678").symlink_to(real)
    remove_forgotten()
    assert (real / scratch.LOCK).exists()


def test_nobody_can_be_in_the_way(usual: Path) -> None:
    (usual / "hotloop-12345678").mkdir()
    (usual / "hotloop-12345678" / scratch.LOCK).symlink_to("x" * 300)
    remove_forgotten()
    assert (usual / "hotloop-12345678").is_dir()


def test_what_cannot_be_removed_is_found_again(
    usual: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Scratch([])
    (made.path / scratch.SECRETS).write_text("secret")
    (made.path / "temporary").mkdir()
    with monkeypatch.context() as patched:
        kept = removing._erase
        patched.setattr(
            removing, "_erase", lambda path: None if "temporary" in path else kept(path)
        )
        made.remove()
    assert sorted(os.listdir(made.path)) == [scratch.LOCK, "temporary"]
    remove_forgotten()
    assert not made.path.exists()
