"""How far a tensor is from the reference's, added up piece by piece.

A large model has billions of numbers, and each would need several copies in double precision;
pieces that fit a processor's cache are many times as fast, and need no memory to speak of.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

PIECE = 1 << 18
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


def distance(torch: Any, wanted: Any, found: Any, gradients: tuple[Any, Any] | None) -> Distance:
    """`gradients`: the reference's and the other one's, of which these are the updates."""
    pieces = [_pieces(torch, tensor) for tensor in (wanted, found, *(gradients or ()))]
    square = apart = along = unsettled = 0.0
    undecided = 0
    for one, other, *slopes in zip(*pieces, strict=True):
        one, other = one.to(torch.float64), other.to(torch.float64)
        beyond = other - one
        square += float(one @ one)
        apart += float(beyond @ beyond)
        along += float(one @ other)
        if slopes:
            then, now = slopes
            beyond = beyond[(now - then).abs() > UNSETTLED * then.abs()]
            unsettled += float(beyond @ beyond)
            undecided += len(beyond)
    return Distance(
        math.sqrt(square),
        math.sqrt(apart),
        along / square if square else 1.0,
        math.sqrt(unsettled),
        undecided,
    )


def norm(torch: Any, tensor: Any) -> float:
    pieces = (piece.to(torch.float64) for piece in _pieces(torch, tensor))
    return math.sqrt(sum(float(piece @ piece) for piece in pieces))


def _pieces(torch: Any, tensor: Any) -> Any:
    plain = tensor.detach().resolve_conj()
    numbers = torch.view_as_real(plain) if plain.is_complex() else plain
    return numbers.flatten().split(PIECE)
