"""Deleting what a trial left in its scratch space, and nothing else.

It may hold whatever the script put there: folders that even their owner cannot list, as an overlay
leaves them, or another user's; and something that the script has mounted, which is not ours to
empty.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat

import psutil


def remove(path: str) -> None:
    """As far as that is possible. A link goes, and not what it points at."""
    folder, name = os.path.split(path)
    path = os.path.join(os.path.realpath(folder), name)
    beneath = f"{path}{os.sep}"
    mounted = [place for place in _mounted() if place == path or place.startswith(beneath)]
    if not mounted:
        _erase(path)
    elif path not in mounted:
        for name in _names(path):
            remove(os.path.join(path, name))


def _mounted() -> list[str]:
    try:
        return [one.mountpoint for one in psutil.disk_partitions(all=True)]
    except OSError:  # there is nothing to read it from
        return []


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _erase(path: str) -> None:
    if os.path.islink(path) or not os.path.isdir(path):
        with contextlib.suppress(OSError):
            os.unlink(path)
        return
    for parent, folders, _ in os.walk(path):
        for folder in (os.path.join(parent, name) for name in folders):
            if not os.path.islink(folder):
                with contextlib.suppress(OSError):
                    os.chmod(folder, stat.S_IRWXU)
    shutil.rmtree(path, ignore_errors=True)
