from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotloop import lock
from hotloop.errors import FolderBusy, StudyNotWritable

HOLDER = """\
import sys, time
from pathlib import Path
from hotloop import lock
with lock.held(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / ".hotloop"


@pytest.fixture
def holder(base: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another hotloop, at work in the folder."""
    words = [sys.executable, "-c", HOLDER, str(base)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def take(base: Path) -> None:
    with lock.held(base):
        pass


def test_the_folder_is_made_and_kept_out_of_version_control(base: Path) -> None:
    take(base)
    assert (base / ".gitignore").read_text() == "*\n"


def test_a_gitignore_of_the_users_own_stays(base: Path) -> None:
    base.mkdir()
    (base / ".gitignore").write_text("trial-*\n")
    take(base)
    assert (base / ".gitignore").read_text() == "trial-*\n"


def test_a_second_hotloop_is_told_who_holds_the_folder(
    base: Path, holder: subprocess.Popen[bytes]
) -> None:
    with pytest.raises(FolderBusy) as refused:
        take(base)
    said = f"Another hotloop (process {holder.pid}) is at work in {base}."
    assert refused.value.sentence == said
    assert "--study" in refused.value.remedy


def test_a_holder_that_has_not_written_its_number_yet_is_not_named(
    base: Path, holder: subprocess.Popen[bytes]
) -> None:
    (base / "lock").write_bytes(b"")
    with pytest.raises(FolderBusy, match=r"^Another hotloop is at work in "):
        take(base)


def test_one_that_was_killed_holds_nothing(base: Path, holder: subprocess.Popen[bytes]) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    take(base)


def test_it_is_let_go_of_at_the_end_and_after_an_error(base: Path) -> None:
    take(base)
    with pytest.raises(LookupError), lock.held(base):
        raise LookupError
    take(base)


def test_a_process_started_meanwhile_does_not_hold_it_on(base: Path) -> None:
    with lock.held(base):
        sleeper = subprocess.Popen(["sleep", "600"], close_fds=False)
    try:
        take(base)
    finally:
        sleeper.kill()
        sleeper.wait()


def test_other_folders_are_free(base: Path, tmp_path: Path) -> None:
    with lock.held(base):
        take(tmp_path / "elsewhere")


def test_a_shorter_number_replaces_a_longer_one(base: Path) -> None:
    base.mkdir()
    (base / "lock").write_text("123456789012345")
    with lock.held(base):
        assert (base / "lock").read_text() == str(os.getpid())


def test_a_file_system_without_locks_is_worked_on_all_the_same(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with lock.held(base):
        take(base)


def test_where_nothing_can_be_written_the_remedy_is_another_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StudyNotWritable) as refused:
        take(tmp_path / "file" / ".hotloop")
    assert "--study" in refused.value.remedy
