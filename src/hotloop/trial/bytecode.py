"""Whether an interpreter has torch's bytecode at hand, or compiles its source at every start.

Some installers leave that to the first import. In a trial, what an import writes into an
environment beside the script is scratch, and gone with it; in an environment that belongs to
somebody else it cannot be written at all. Every process then takes several seconds longer.
"""

from __future__ import annotations

import subprocess
from functools import lru_cache

_LOOK = """
import importlib.util, os
torch = importlib.util.find_spec("torch")
if torch and torch.origin and not os.path.exists(importlib.util.cache_from_source(torch.origin)):
    print("missing")
"""


@lru_cache
def is_missing(python: str) -> bool:
    """Looks without importing. What cannot be found out is not missing."""
    try:
        seen = subprocess.run([python, "-c", _LOOK], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return seen.stdout.strip() == "missing"
