"""Whether a series of numbers keeps rising, noise and single jumps aside."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

BINS = 24
"""Medians of so many stretches are compared: a single slow step then counts for nothing."""
FEWEST = 12
"""Values. Fewer show no trend."""
STEADY = 0.6
"""Of all pairs of stretches, those that rise less those that fall (Kendall's tau). Noise alone
reaches 0.3 about once in a hundred series of twenty-four."""


@dataclass(frozen=True)
class Trend:
    total: float
    """From the first value to the last, by the median slope (Theil and Sen)."""
    tau: float

    @property
    def rises(self) -> bool:
        return self.total > 0 and self.tau >= STEADY


def trend(values: Sequence[float]) -> Trend:
    if len(values) < FEWEST:
        return Trend(0.0, 0.0)
    stretches = _medians(values)
    pairs = list(combinations(range(len(stretches)), 2))
    slopes = [(stretches[j] - stretches[i]) / (j - i) for i, j in pairs]
    tau = sum((slope > 0) - (slope < 0) for slope in slopes) / len(pairs)
    a_value = statistics.median(slopes) / _width(values)
    return Trend(a_value * (len(values) - 1), tau)


def _medians(values: Sequence[float]) -> list[float]:
    width = _width(values)
    return [statistics.median(values[i : i + width]) for i in range(0, len(values), width)]


def _width(values: Sequence[float]) -> int:
    return max(1, -(-len(values) // BINS))
