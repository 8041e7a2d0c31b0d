"""From values to places on a drawing, and the round numbers that an axis shows."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    low: float
    high: float
    start: float
    end: float
    """Where `low` and `high` lie on the drawing."""
    is_log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = self.low, self.high, value
        if self.is_log:
            low, high, at = (math.log10(max(each, 1e-300)) for each in (low, high, value))
        if high == low:
            return self.start
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def ticks(self, about: int = 5) -> list[float]:
        return _decades(self.low, self.high) if self.is_log else _round(self.low, self.high, about)


def byte_ticks(scale: Scale, about: int = 3) -> list[float]:
    """Round in the unit that sizes are written in."""
    unit = next((unit for unit in (2**30, 2**20, 2**10) if scale.high >= unit), 1)
    return [tick * unit for tick in _round(scale.low / unit, scale.high / unit, about)]


def _round(low: float, high: float, about: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten."""
    if not high > low:
        return [low]
    rough = (high - low) / max(about, 1)
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def _decades(low: float, high: float) -> list[float]:
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [10.0**power for power in range(first, last + 1)]
