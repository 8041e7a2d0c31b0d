"""Questions that a machine may refuse to answer."""

from __future__ import annotations

from typing import Any


def ask(question: Any) -> Any:
    """What this machine, driver or virtual machine does not have, or does not tell, is None."""
    try:
        return question()
    except Exception:
        return None
