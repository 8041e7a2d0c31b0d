"""Batches of token sequences, and shorter sequences made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def length(torch: Any, batch: Any) -> int:
    """Tokens to a sequence; 0 where a batch holds anything but whole numbers of one such shape.

    A target for a whole sequence, say, would not know which of its parts it belongs to.
    """
    held = _values(batch)
    shapes = {tuple(value.shape) for value in held if _is_sequences(torch, value)}
    if len(shapes) != 1 or not all(_is_sequences(torch, value) for value in held):
        return 0
    return int(shapes.pop()[1])


def can_be_cut(tokens: int, parts: int) -> bool:
    return tokens > parts > 1 and tokens % parts in (0, 1)


def cut(batch: Any, tokens: int, parts: int) -> Any:
    """Every sequence as so many samples, one after the other: [2, 8] becomes [4, 4].

    One token more than can be shared out is what a loss needs that predicts the next one, and
    neighbours share it: [2, 9] becomes [4, 5], and every token is still predicted once.
    """
    step, more = divmod(tokens, parts)

    def shorter(value: Any) -> Any:
        return value.unfold(1, step + more, step).reshape(-1, step + more)

    if isinstance(batch, Mapping):
        return {name: shorter(value) for name, value in batch.items()}
    if isinstance(batch, list | tuple):
        inner = [shorter(value) for value in batch]
        return type(batch)(*inner) if hasattr(batch, "_fields") else type(batch)(inner)
    return shorter(batch)


def _values(batch: Any) -> list[Any]:
    if isinstance(batch, Mapping):
        return list(batch.values())
    return list(batch) if isinstance(batch, list | tuple) else [batch]


def _is_sequences(torch: Any, value: Any) -> bool:
    if not isinstance(value, torch.Tensor) or value.dim() != 2:
        return False
    return not (value.is_floating_point() or value.is_complex())
