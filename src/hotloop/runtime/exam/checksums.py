"""A short fingerprint of a batch: every number in it, its shapes and its types."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

DEPTH = 6
LARGE = 1 << 12
"""Bytes of a sample from which it is added up where it lies. Copied to the host and gone through
byte by byte there, a batch of pictures takes ten times as long as its step on a GPU."""
WORDS = 1 << 16
"""That are added up to one number."""
AT_ONCE = 1 << 20
"""Words that are gone over together: a device may have little memory left."""


def checksum(torch: Any, value: Any) -> str:
    """Waits for the device. Equal for equal numbers, wherever and in whatever strides they lie."""
    digest = hashlib.blake2b(digest_size=8)
    _add(torch, digest, value, DEPTH)
    return digest.hexdigest()


class RowSums:
    """Of all that came along in a step: the same however the samples are put into passes.

    Parts of a batch lie one after the other, so do their bytes.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._sums: dict[str, tuple[Any, int]] = {}

    def add(self, stream: str, value: Any) -> None:
        for place, tensor in enumerate(_tensors(self._torch, value, DEPTH)):
            name = f"{stream}, part {place + 1}" if place else stream
            digest, rows = self._sums.get(name, (hashlib.blake2b(digest_size=8), 0))
            if not rows:
                _say(digest, f"{tensor.dtype}{tuple(tensor.shape[1:])}")
            _add_numbers(self._torch, digest, tensor)
            self._sums[name] = digest, rows + len(tensor)

    def taken(self) -> list[tuple[str, int, str]]:
        """Stream, samples and checksum; from here on the next step's are added up."""
        sums = [(name, rows, digest.hexdigest()) for name, (digest, rows) in self._sums.items()]
        self._sums.clear()
        return sums


def _tensors(torch: Any, value: Any, depth: int) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        if value.dim() and not value.is_nested:
            yield value
    elif depth and isinstance(value, list | tuple | Mapping):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _tensors(torch, part, depth - 1)


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
    _add_numbers(torch, digest, tensor)


def _add_numbers(torch: Any, digest: Any, tensor: Any) -> None:
    """Of samples one after the other: those of several parts are those of the whole."""
    if torch.utils._python_dispatch.is_traceable_wrapper_subclass(tensor):
        for name in tensor.__tensor_flatten__()[0]:  # has no memory of its own
            _add_numbers(torch, digest, getattr(tensor, name))
        return
    plain = tensor.detach()
    if plain.layout is not torch.strided:
        plain = plain.to_dense()
    is_large = plain.dim() > 1 and plain[:1].numel() * plain.element_size() >= LARGE
    if is_large and not plain.is_quantized:
        try:
            plain = _added_up(torch, plain)
        except torch.OutOfMemoryError:
            plain = _added_up(torch, plain.cpu())
    plain = plain.cpu().resolve_conj().resolve_neg().contiguous()
    if plain.numel():
        # By address: numpy, which could hand out the memory, need not be there.
        digest.update(ctypes.string_at(plain.data_ptr(), plain.numel() * plain.element_size()))


def _added_up(torch: Any, tensor: Any) -> Any:
    """A number for every so many words of each sample. The same on every device."""
    # Of a kind of its own it may do anything with what follows.
    plain = tensor.as_subclass(torch.Tensor).resolve_conj().resolve_neg()
    plain = plain.contiguous().flatten(1).view(torch.uint8)
    if plain.shape[1] % 4 == 0:
        begins = plain.storage_offset() % 4 == 0  # where words do
        plain = (plain if begins else plain.clone()).view(torch.int32)
    factors = _factors(torch, min(WORDS, plain.shape[1]), plain.device)
    return torch.cat([_sums(torch, part, factors) for part in plain.split(WORDS, 1)], 1)


def _sums(torch: Any, words: Any, factors: Any) -> Any:
    some = words.split(max(1, AT_ONCE // words.shape[1]))
    factors = factors[: words.shape[1]]
    return torch.cat([(rows * factors).sum(1, keepdim=True) for rows in some])


def _factors(torch: Any, count: int, device: Any) -> Any:
    """An odd number of 64 bits for every word: one that differs always shows; that several do not,
    or two in each other's places, is next to impossible. What grows too large wraps around."""
    factors = torch.arange(1, count + 1, device=device) * 0x1E3779B97F4A7C15
    for factor in (0x3F58476D1CE4E5B9, 0x14D049BB133111EB):
        factors = (factors ^ (factors >> 29)) * factor
    return (factors ^ (factors >> 32)) | 1
