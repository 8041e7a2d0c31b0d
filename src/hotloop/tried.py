"""What was tried in a run that is looked into: steps as they are and otherwise, in turns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ThreadsTried:
    """Steps with as many threads as there are cores, and with those that the job has, in turns."""

    threads: int
    seconds: float
    """Of a step with these, …"""
    own_seconds: float
    """… and with the job's own."""


@dataclass(frozen=True)
class AnomalyTried:
    """Steps without autograd's anomaly detection, which the job has on, and with it, in turns."""

    seconds: float | None = None
    """Of a step without it, …"""
    own_seconds: float | None = None
    """… and with it. None: too few steps were seen of either."""
