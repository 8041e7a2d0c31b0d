"""Which torch an interpreter has, found out without importing it: that would take seconds."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from hotloop import codec

# torch writes down what it was built for in a file of plain assignments.
_LOOK = """\
import importlib.util, json, os, platform, runpy
found = {"python": platform.python_version()}
spec = importlib.util.find_spec("torch")
if spec is not None and spec.origin:
    built = runpy.run_path(os.path.join(os.path.dirname(spec.origin), "version.py"))
    found["torch"] = built["__version__"]
    found["cuda"] = built.get("cuda")
    found["hip"] = built.get("hip")
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Installed:
    python: str | None = None
    """Its version. None: the interpreter does not run, and nothing else is known either."""
    torch: str | None = None
    """Its version. None beside a Python: there is no torch."""
    cuda: str | None = None
    """The CUDA that torch was built for; None for a build without."""
    hip: str | None = None
    """Likewise for AMD's."""


def look(python: str) -> Installed:
    try:
        done = subprocess.run([python, "-c", _LOOK], capture_output=True, timeout=60)
        return codec.decode(done.stdout.splitlines()[-1], Installed)
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError):
        return Installed()
