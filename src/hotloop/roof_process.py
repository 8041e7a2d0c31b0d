"""The process that measures a machine's roof: started, watched, and ended with all it started."""

from __future__ import annotations

import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hotloop import codec
from hotloop.roof import Roof
from hotloop.trial import reaping
from hotloop.trial.environment import users_environment

LIMIT_SECONDS = 90.0
"""Several times what it takes: a cold disk alone may take torch half a minute to load."""
PROGRAM = Path(__file__).parent / "runtime" / "roof.py"


@dataclass(frozen=True)
class Measured:
    roof: Roof | None = None
    """What was measured until the process ended. None: nothing at all."""
    finished: bool = False
    """Whether it got to its end. What is missing then cannot be measured here."""


def in_a_process(
    python: str, watch: Callable[[], None], limit: float = LIMIT_SECONDS, program: Path = PROGRAM
) -> Measured:
    mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory(prefix="hotloop-") as folder:
        result = Path(folder, "roof.json")
        try:
            process = subprocess.Popen(
                [python, str(program), str(result), str(limit)],
                env=_environment(mark),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            return Measured()
        try:
            ended = _ended(process, watch, limit)
        finally:
            reaping.end(process, mark)
        return Measured(_read(result), finished=ended == 0)


def _environment(mark: str) -> dict[str, str]:
    environment = {**users_environment(), reaping.MARK: mark}
    # It turns one format into another behind torch's back; the roof is to be of the hardware.
    environment.pop("NVIDIA_TF32_OVERRIDE", None)
    return environment


def _ended(process: subprocess.Popen[bytes], watch: Callable[[], None], limit: float) -> int | None:
    """Its exit status. None: it had to be given up."""
    deadline = time.monotonic() + limit
    while process.poll() is None:
        if time.monotonic() > deadline:
            return None
        watch()
        time.sleep(0.05)
    return process.returncode


def _read(path: Path) -> Roof | None:
    try:
        return codec.decode(path.read_bytes(), Roof)
    except (OSError, ValueError):
        return None
