"""Samples that are kept compressed: each is really decoded and augmented when it is asked for."""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

Augment = Callable[..., Any]
"""From a sample's tensors, as they were kept, to what the model is given."""


@dataclass(frozen=True)
class Packed:
    """A tensor in a few bytes, as a file would hold it."""

    raw: bytes
    shape: tuple[int, ...]
    format: Any

    @classmethod
    def of(cls, tensor: Any) -> Packed:
        plain = tensor.contiguous()
        size = plain.numel() * plain.element_size()
        raw = zlib.compress(ctypes.string_at(plain.data_ptr(), size))
        return cls(raw, tuple(tensor.shape), tensor.dtype)

    def unpacked(self) -> Any:
        raw = bytearray(zlib.decompress(self.raw))
        return torch.frombuffer(raw, dtype=self.format).reshape(self.shape)


class Encoded(torch.utils.data.Dataset[Any]):  # type: ignore[misc]
    """A few samples over and over, never the same: `augment` draws anew each time."""

    def __init__(self, columns: Sequence[Any], length: int, augment: Augment) -> None:
        self._samples = [tuple(map(Packed.of, sample)) for sample in zip(*columns, strict=True)]
        self._length = length
        self._augment = augment

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        packed = self._samples[index % len(self._samples)]
        return self._augment(*(each.unpacked() for each in packed))


def is_heads() -> bool:
    """A coin, from torch's own seed: each worker of a loader has another."""
    return bool(torch.rand(()) < 0.5)
