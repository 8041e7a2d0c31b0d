"""Processes that begin in another folder find what is found from this one."""

from __future__ import annotations

import os
from pathlib import Path


def environment(*first: Path) -> dict[str, str]:
    """With a PYTHONPATH that means there what it means here: hotloop itself may be found by it
    alone. `first`: what stands before it."""
    found = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    paths = os.pathsep.join(os.path.abspath(path) for path in [*map(str, first), *found])
    return {**os.environ, "PYTHONPATH": paths} if paths else {**os.environ}
