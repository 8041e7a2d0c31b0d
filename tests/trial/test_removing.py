from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.trial import removing
from hotloop.trial.removing import remove


def test_a_file_and_a_folder_that_cannot_be_listed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    locked = tmp_path / "a" / "b"
    locked.mkdir(parents=True)
    (locked / "c").touch()
    locked.chmod(0)
    for name in ("file", "a", "never_was"):
        remove(str(tmp_path / name))
    assert list(tmp_path.iterdir()) == []


def test_of_a_link_what_it_points_at_stays(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.mkdir()
    (users / "precious").touch()
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "link").symlink_to(users)
    remove(str(ours / "link"))
    assert (users / "precious").exists() and not os.path.lexists(ours / "link")
    (ours / "link").symlink_to(users)
    remove(str(ours))
    assert (users / "precious").exists() and not ours.exists()


def test_what_is_mounted_in_it_stays_and_the_rest_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted = tmp_path / "ours" / "temporary" / "data"
    mounted.mkdir(parents=True)
    (mounted / "precious").touch()
    (tmp_path / "ours" / "temporary" / "other").mkdir()
    (tmp_path / "ours" / "more").touch()
    monkeypatch.setattr(removing, "_mounted", lambda: ["/", str(mounted)])
    remove(str(tmp_path / "ours"))
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert left == ["ours", "ours/temporary", "ours/temporary/data", "ours/temporary/data/precious"]


def can_mount() -> bool:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    command = ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.skipif(not can_mount(), reason="needs root and the right to mount")
def test_a_real_mount(tmp_path: Path) -> None:
    users, ours = tmp_path / "users", tmp_path / "our own" / "place"
    for folder in (users, ours):
        folder.mkdir(parents=True)
    (users / "precious").touch()
    call = f"from hotloop.trial.removing import remove; remove({str(tmp_path / 'our own')!r})"
    script = 'mount --bind "$1" "$2" && exec "$3" -c "$4"'
    words = ["unshare", "-m", "sh", "-c", script, "sh", str(users), str(ours), sys.executable, call]
    subprocess.run(words, check=True)
    assert (users / "precious").exists()
