"""A training to its end, in a process of its own: watched, and ended with all that it started."""

from __future__ import annotations

import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from hotloop.trial import reaping
from hotloop.trial.outcome import signal_name

POLL_SECONDS = 0.05
MOST_WORDS = 2000
"""Of what it said last, in bytes."""


def failure(
    words: Sequence[str],
    environment: dict[str, str],
    cwd: str,
    limit: float,
    watch: Callable[[], None],
) -> str:
    """Why it did not come to its end; empty when it did. `watch` is called many times a second, and
    may raise: then it is ended too."""
    mark = uuid.uuid4().hex
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            list(words),
            env={**environment, reaping.MARK: mark},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        )
        try:
            ended = _wait(process, limit, watch)
        finally:
            reaping.end(process, mark)
            _remove_spec(environment)
        if ended is None:
            return f"it took longer than {limit:.0f} s"
        if ended < 0:
            return f"it was killed by {signal_name(ended)}"
        said.seek(max(0, said.seek(0, 2) - MOST_WORDS))
        lines = said.read().decode("utf-8", "replace").strip().splitlines()
    return "" if ended == 0 else (lines or ["it ended early"])[-1]


def _wait(process: subprocess.Popen[bytes], limit: float, watch: Callable[[], None]) -> int | None:
    """Its exit status. None: it was given up."""
    deadline = time.monotonic() + limit
    while process.poll() is None:
        if time.monotonic() > deadline:
            return None
        watch()
        time.sleep(POLL_SECONDS)
    return process.returncode


def _remove_spec(environment: dict[str, str]) -> None:
    """The plan's, which a process that was ended early has not removed itself."""
    spec = Path(environment.get("HOTLOOP_SPEC", ""))
    if spec.name.startswith("hotloop-"):
        spec.unlink(missing_ok=True)
