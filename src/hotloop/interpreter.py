"""Which Python a job runs in: the user's own, which need not be the one hotloop is installed in."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from hotloop.errors import InterpreterNotFound, TorchNotFound


def find(wanted: str | None) -> str:
    """`--python`, else the active environment, else our own if it has torch, else the PATH's."""
    if wanted is not None:
        found = shutil.which(wanted)
        if found is None:
            raise InterpreterNotFound(
                f"There is no Python interpreter {wanted}.",
                "Give --python the path of the interpreter that the script is usually run with.",
            )
        return found
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        python = Path(os.environ.get(variable) or "/nonexistent", "bin", "python")
        if python.exists():
            return str(python)
    if importlib.util.find_spec("torch") is not None:
        return sys.executable
    return shutil.which("python") or shutil.which("python3") or sys.executable


def require_torch(python: str, cwd: str) -> None:
    """Looks without importing: that would take seconds."""
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    try:
        outcome = subprocess.run([python, "-c", look], cwd=cwd, capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InterpreterNotFound(
            f"{python} does not run as a Python interpreter ({error}).",
            "Give --python the path of the interpreter that the script is usually run with.",
        ) from None
    if outcome.returncode:
        raise TorchNotFound(
            f"There is no torch in {python}.",
            "Activate the environment the script belongs to, or name its Python with --python.",
        )
