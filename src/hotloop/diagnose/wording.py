"""Numbers as they stand in a finding's sentences."""

from __future__ import annotations


def percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"


def seconds(value: float) -> str:
    if value < 1e-3:
        return f"{value * 1e6:.0f} µs"
    if value < 1:
        return f"{value * 1e3:.{2 if value < 0.01 else 1}f} ms"
    return f"{value:.1f} s"


def size(value: float) -> str:
    if abs(value) < 2**20:
        return f"{value / 2**10:.0f} KiB"
    if abs(value) < 2**30:
        return f"{value / 2**20:.0f} MiB"
    return f"{value / 2**30:.1f} GiB"


def times(count: float, what: str) -> str:
    """ "1 worker", "3 workers"."""
    shown = f"{count:,.0f}" if count >= 10 or count == round(count) else f"{count:.1f}"
    return f"{shown} {what}{'' if shown == '1' else 's'}"
