"""Numbers, and lists of many names, as people read them."""

from __future__ import annotations

from collections.abc import Sequence


def seconds(value: float) -> str:
    if value < 1e-3:
        return f"{value * 1e6:.0f} µs"
    if value < 1:
        return f"{value * 1e3:.{2 if value < 0.01 else 1}f} ms"
    if value < 120:
        return f"{value:.{2 if value < 10 else 1}f} s"
    if value < 7200:
        return f"{value / 60:.1f} min"
    return f"{value / 3600:.1f} h"


def size(value: float) -> str:
    amount, unit = float(value), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(amount) < 1024 or unit == "GiB":
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if abs(amount) >= 100 or unit == "B" else f"{amount:.1f} {unit}"


def throughput(bytes_a_second: float) -> str:
    """By thousands, as data sheets count."""
    if bytes_a_second < 1e12:
        return f"{bytes_a_second / 1e9:.3g} GB/s"
    return f"{bytes_a_second / 1e12:.3g} TB/s"


def rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def count(value: int) -> str:
    return f"{value:,}"


def percent(share: float) -> str:
    return f"{share * 100:.1f}%"


def some(names: Sequence[str]) -> str:
    """Of many the first, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
