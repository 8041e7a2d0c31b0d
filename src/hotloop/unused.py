"""Gradients that are computed and that nobody uses, in a run that was looked into."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class UnusedGradients:
    """Of parameters that learn and get gradients, that no optimizer holds and that never change."""

    tensors: int
    elements: int
    of_backward: float
    """The part of the backward passes that comes after the last gradient which is used."""
