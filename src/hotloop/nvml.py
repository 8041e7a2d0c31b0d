"""NVIDIA's management library, asked politely. What it does not tell is None, never an error."""

from __future__ import annotations

import os
from typing import Any


def load() -> Any:
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no package, no driver, no permission: all mean that nothing is known
        return None
    return pynvml


def first_visible() -> int:
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
    return int(first) if first.isdigit() else 0


def hidden() -> bool:
    """Whether a job is to see no GPU at all."""
    return os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")


def text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
