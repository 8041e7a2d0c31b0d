"""How long a search may take, and each of its trials."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Granted:
    """What a trial may take."""

    limit: float
    """Seconds a single trial."""
    budget: float | None
    """Seconds all of them together."""
    steps: int | None
    """Measured steps a trial, where the user has said so."""
