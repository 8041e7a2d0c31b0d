"""Weights with their channels last, saved by safetensors: it takes nothing but the plain order.

A script that was never told so would fail at its first checkpoint, hours into its training.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from typing import Any

INNER = ("_flatten", "_flatten_as_ptr")
"""Which its functions that save hand the tensors to, by its version. The functions themselves may
have been imported by name, and are then out of reach."""
OUTER = ("save", "save_file")


def bear_channels_last(torch: Any) -> None:
    """Where it is installed. Files come out as those of the plain job."""
    with contextlib.suppress(ImportError):
        module = importlib.import_module("safetensors.torch")
        names = [name for name in INNER if hasattr(module, name)] or OUTER
        for name in names:
            function = getattr(module, name)
            if not hasattr(function, "packs"):
                setattr(module, name, _packing(torch, function))


def _packing(torch: Any, function: Any) -> Any:
    @functools.wraps(function)
    def packed(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(tensors, dict):
            tensors = {name: _packed(torch, value) for name, value in tensors.items()}
        return function(tensors, *args, **kwargs)

    packed.packs = True  # type: ignore[attr-defined]
    return packed


def _packed(torch: Any, value: Any) -> Any:
    if not isinstance(value, torch.Tensor) or value.is_contiguous():
        return value
    order = {4: torch.channels_last, 5: torch.channels_last_3d}.get(value.dim())
    is_ours = order is not None and value.is_contiguous(memory_format=order)
    return value.contiguous() if is_ours else value
