"""Does a plan do the same training as the job without it? Fails closed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Equivalence:
    same: bool
    reasons: tuple[str, ...]
    """What differs, named; empty when same."""
    steps: int
    """Over how many steps the structure was compared."""
    forced: int
    """How many of them began from the reference's own weights, and were compared by arithmetic."""
    compared: tuple[str, ...]
    """What was looked at, in sentences."""
    not_compared: tuple[str, ...]
    """What was not."""
    closeness: float | None = None
    """The largest difference in the arithmetic, in units of what would still pass: below 1."""
