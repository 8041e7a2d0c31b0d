"""A folder on the RAM disk that is gone when its process is, however that ends.

The process holds a lock in it, which the kernel takes back with the process. Who gets the lock may
remove the folder: this very file, started as a program, which waits for that; or the next one who
comes to stage files, should even that program have been killed. A process's number says less: that
of a container's is another outside, where containers share their RAM disk.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile

RAM_DISK = "/dev/shm"
PREFIX = "hotloop-staged-"
LOCK = "in-use"


class Folder:
    def __init__(self, ram_disk: str) -> None:
        sweep(ram_disk)
        self.path, self._lock = _new(ram_disk)
        self._owner = os.getpid()
        os.register_at_fork(after_in_child=self._let_go)  # else the lock would live on with them
        atexit.register(self.remove)
        try:
            _watch(self.path)
        except OSError:
            self.remove()
            raise

    def remove(self) -> None:
        """In the process that made it alone: those that were forked off still read from it."""
        if os.getpid() == self._owner and self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            self._let_go()
            atexit.unregister(self.remove)

    def _let_go(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def sweep(ram_disk: str) -> None:
    """Removes the folders of processes that are gone."""
    with contextlib.suppress(OSError), os.scandir(ram_disk) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and _is_ours(entry):
                _remove_when_free(entry.path, fcntl.LOCK_EX | fcntl.LOCK_NB, os.O_CREAT)


def _is_ours(entry: os.DirEntry[str]) -> bool:
    try:
        is_folder = entry.is_dir(follow_symlinks=False)
        return is_folder and entry.stat(follow_symlinks=False).st_uid == os.getuid()
    except OSError:
        return False


def _new(ram_disk: str) -> tuple[str, int]:
    """A folder and the lock in it. Until that is held, one who sweeps may be quicker."""
    while True:
        path = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=ram_disk)
        with contextlib.suppress(FileNotFoundError):
            lock = _opened(path, os.O_CREAT)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.path.exists(os.path.join(path, LOCK)):
                return path, lock
            os.close(lock)


def _opened(folder: str, creating: int) -> int:
    return os.open(os.path.join(folder, LOCK), os.O_RDWR | creating | os.O_CLOEXEC, 0o600)


def _remove_when_free(folder: str, how: int, creating: int = 0) -> None:
    """Who may not create the lock cannot put it back into a folder that is just being removed."""
    with contextlib.suppress(OSError):  # it is held, or gone already
        lock = _opened(folder, creating)
        try:
            fcntl.flock(lock, how)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


def _watch(folder: str) -> None:
    """Starts the program below. It is not the job's child, nor of its group, and no trial's.

    So a job that waits for all of its children does not wait for this one, and what ends a job with
    all it has started leaves this one to clear up. It has none of the job's files open.
    """
    environment = {key: value for key, value in os.environ.items() if "HOTLOOP" not in key}
    with subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, folder],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=environment,
        start_new_session=True,
    ) as started:
        if started.wait():
            raise OSError("what is to clear up did not start")


def main(folder: str) -> None:
    if os.fork():
        os._exit(0)
    _remove_when_free(folder, fcntl.LOCK_EX)


if __name__ == "__main__":
    main(sys.argv[1])
