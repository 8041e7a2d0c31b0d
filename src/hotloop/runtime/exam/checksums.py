"""A short fingerprint of a batch: every number in it, its shapes and its types."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Mapping
from typing import Any

DEPTH = 6


def checksum(torch: Any, value: Any) -> str:
    """Waits for the device. Equal for equal numbers, wherever and in whatever strides they lie."""
    digest = hashlib.blake2b(digest_size=8)
    _add(torch, digest, value, DEPTH)
    return digest.hexdigest()


def _add(torch: Any, digest: Any, value: Any, depth: int) -> None:
    if isinstance(value, torch.Tensor):
        _add_tensor(torch, digest, value)
    elif value is None or isinstance(value, str | bytes | int | float | bool):
        _say(digest, repr(value))
    elif depth == 0:
        _say(digest, type(value).__name__)
    elif isinstance(value, list | tuple):
        _say(digest, str(len(value)))
        for part in value:
            _add(torch, digest, part, depth - 1)
    elif callable(getattr(value, "tobytes", None)):  # as numpy's arrays and pictures have it
        _say(digest, f"{getattr(value, 'dtype', '')}{getattr(value, 'shape', '')}")
        digest.update(value.tobytes())
    else:
        parts = value if isinstance(value, Mapping) else getattr(value, "__dict__", {})
        for name, part in sorted(parts.items(), key=lambda item: str(item[0])):
            _say(digest, str(name))
            _add(torch, digest, part, depth - 1)


def _say(digest: Any, text: str) -> None:
    """With its end marked: 1 and 11 are not 11 and 1."""
    digest.update(text.encode() + b"\0")


def _add_tensor(torch: Any, digest: Any, tensor: Any) -> None:
    if tensor.is_nested:
        for part in tensor.unbind():
            _add_tensor(torch, digest, part)
        return
    _say(digest, f"{tensor.dtype}{tuple(tensor.shape)}")
    if tensor.layout is not torch.strided:
        tensor = tensor.detach().to_dense()
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if plain.numel():
        # By address: numpy, which could hand out the memory, need not be there.
        digest.update(ctypes.string_at(plain.data_ptr(), plain.numel() * plain.element_size()))
