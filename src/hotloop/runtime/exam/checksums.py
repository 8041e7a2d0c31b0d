"""A short fingerprint of a batch: every number in it, its shapes and its types."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Mapping
from typing import Any

DEPTH = 6


def checksum(torch: Any, value: Any) -> str:
    """Waits for the device. Equal for what is equal, wherever it lies and in whatever order."""
    digest = hashlib.blake2b(digest_size=8)
    _add(torch, digest, value, DEPTH)
    return digest.hexdigest()


def _add(torch: Any, digest: Any, value: Any, depth: int) -> None:
    if isinstance(value, torch.Tensor):
        _add_tensor(torch, digest, value)
    elif value is None or isinstance(value, str | bytes | int | float | bool):
        digest.update(repr(value).encode())
    elif depth == 0:
        digest.update(type(value).__name__.encode())
    elif isinstance(value, list | tuple):
        for part in value:
            _add(torch, digest, part, depth - 1)
    else:
        parts = value if isinstance(value, Mapping) else getattr(value, "__dict__", {})
        for name, part in parts.items():
            digest.update(str(name).encode())
            _add(torch, digest, part, depth - 1)


def _add_tensor(torch: Any, digest: Any, tensor: Any) -> None:
    digest.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
    if tensor.layout is not torch.strided:
        tensor = tensor.detach().to_dense()
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if plain.numel():
        # By address: numpy, which could hand out the memory, need not be there.
        digest.update(ctypes.string_at(plain.data_ptr(), plain.numel() * plain.element_size()))
