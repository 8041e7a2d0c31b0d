"""How far a tensor is from the reference's, added up piece by piece.

A large model has billions of numbers, and each would need several copies in double precision;
pieces that fit a processor's cache are many times as fast, and need no memory to speak of. Those of
a model on a GPU are added up there: several trials at a time would wait for each other's cores.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

PIECE = {"cpu": 1 << 18, "cuda": 1 << 22}
"""Numbers at a time, by the kind of device that adds them up."""
UNSETTLED = 0.5
"""Where two gradients of one number differ by more than this part of it, rounding has decided."""


@dataclass(frozen=True)
class Distance:
    reference: float
    """The reference's norm."""
    difference: float
    along: float
    """The part that lies along the reference: 1 where the two are equal."""
    unsettled: float = 0.0
    """The difference where rounding has decided what the gradient is."""
    undecided: int = 0
    """Of how many numbers that is so."""


class Distances:
    """Added up on a device, if it is of a kind that can, and on the host where it has no room."""

    def __init__(self, torch: Any, device: Any) -> None:
        self._torch = torch
        self._host = torch.device("cpu")
        self._device = device if device.type == "cuda" else self._host

    def between(self, wanted: Any, found: Any, gradients: tuple[Any, Any] | None) -> Distance:
        """`gradients`: the reference's and the other one's, of which these are the updates."""
        square, apart, along, unsettled, undecided = self._sums(
            self._compared, wanted, found, *(gradients or ())
        )
        return Distance(
            math.sqrt(square),
            math.sqrt(apart),
            along / square if square else 1.0,
            math.sqrt(unsettled),
            int(undecided),
        )

    def norm(self, tensor: Any) -> float:
        (square,) = self._sums(self._squared, tensor)
        return math.sqrt(square)

    def _sums(self, add_up: Any, *tensors: Any) -> list[float]:
        try:
            found = add_up(self._device, *tensors)
        except self._torch.OutOfMemoryError:
            found = add_up(self._host, *tensors)
        return list(found.tolist())

    def _compared(self, device: Any, *tensors: Any) -> Any:
        torch = self._torch
        if len({tensor.numel() for tensor in tensors}) > 1:
            raise ValueError("they have different sizes")
        sums = torch.zeros(5, dtype=torch.float64, device=device)
        for one, other, *slopes in zip(*(self._pieces(t, device) for t in tensors), strict=True):
            one, other = one.to(torch.float64), other.to(torch.float64)
            beyond = other - one
            parts = [one.square().sum(), beyond.square().sum(), (one * other).sum()]
            if slopes:
                then, now = slopes
                is_open = (now - then).abs() > UNSETTLED * then.abs()
                parts += [torch.where(is_open, beyond, 0.0).square().sum(), is_open.sum()]
            sums[: len(parts)] += torch.stack([part.to(torch.float64) for part in parts])
        return sums

    def _squared(self, device: Any, tensor: Any) -> Any:
        torch = self._torch
        total = torch.zeros(1, dtype=torch.float64, device=device)
        for piece in self._pieces(tensor, device):
            total += piece.to(torch.float64).square().sum()
        return total

    def _pieces(self, tensor: Any, device: Any) -> Iterator[Any]:
        torch = self._torch
        plain = tensor.detach().resolve_conj()
        numbers = torch.view_as_real(plain) if plain.is_complex() else plain
        if device.type == "cpu":
            numbers = numbers.cpu()  # first: another order of dimensions is flattened into a copy
        for piece in numbers.flatten().split(PIECE[device.type]):
            # Not by `to`: what leaves the host by it is taken for the script's own data.
            is_there = piece.device == device
            yield piece if is_there else torch.empty_like(piece, device=device).copy_(piece)
