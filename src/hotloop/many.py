"""`stats` for thousands of values at once, by numpy: a report asks it of every trial of a study."""

from __future__ import annotations

import math
from typing import Any

from hotloop import stats


def summary(ordered: Any) -> stats.Summary:
    """Of an array that is sorted already."""
    count = len(ordered)
    if not count:
        raise ValueError("nothing to summarise")
    mean = math.fsum(ordered.tolist()) / count
    apart = ordered - mean
    spread = math.sqrt(float(apart @ apart) / (count - 1)) if count > 1 else 0.0
    return stats.Summary(
        count=count,
        mean=mean,
        spread=spread,
        p50=percentile(ordered, 50),
        p95=percentile(ordered, 95),
        p99=percentile(ordered, 99),
        fastest=float(ordered[0]),
        slowest=float(ordered[-1]),
    )


def percentile(ordered: Any, percent: float) -> float:
    """Of an array that is sorted already; linear between the two nearest ranks."""
    position = (len(ordered) - 1) * percent / 100
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return float(ordered[below] + (ordered[above] - ordered[below]) * (position - below))


def warm_up(values: Any, at_least: int = 0) -> int:
    """As `stats.warm_up`, which says what it is."""
    import numpy as np

    half = len(values) // 2
    if half < 2:
        return min(at_least, max(len(values) - 1, 0))
    ordered = np.sort(values[half:])
    quarter, median, three_quarters = (percentile(ordered, p) for p in (25, 50, 75))
    reach = max(3 * (three_quarters - quarter), 0.02 * median)
    clipped = np.clip(values, quarter - reach, three_quarters + reach)
    apart = clipped[::-1] - clipped[-1]
    counts = np.arange(1, len(values) + 1)
    errors = (np.cumsum(apart**2) - np.cumsum(apart) ** 2 / counts) / counts**2
    dropped = int(np.argmin(errors[::-1][: half + 1]))
    return min(max(dropped, at_least), len(values) - 1)
