"""Numbers as they stand in a finding's sentences."""

from __future__ import annotations

from hotloop.units import seconds, size

__all__ = ["percent", "seconds", "size", "times"]


def percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"


def times(count: float, what: str) -> str:
    """ "1 worker", "3 workers"."""
    shown = f"{count:,.0f}" if count >= 10 or count == round(count) else f"{count:.1f}"
    return f"{shown} {what}{'' if shown == '1' else 's'}"
