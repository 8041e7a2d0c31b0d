"""Leaving no process behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time

MARK = "HOTLOOP_TRIAL"
"""Every process of a trial inherits this variable: whoever leaves the group is still found."""

PATIENCE_SECONDS = 1.0


def end(process: subprocess.Popen[bytes], mark: str) -> None:
    """Ends the script and everything it started.

    The script itself first, at once: it shall not save on its way out. Then the rest of its group
    politely, so that Python's resource tracker can release shared memory, then by force.
    """
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    process.wait()
    _signal_group(process.pid, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while _group_lives(process.pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    _signal_group(process.pid, signal.SIGKILL)
    kill_marked(mark)


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def kill_marked(mark: str) -> None:
    import psutil

    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(MARK) == mark:
                process.kill()
