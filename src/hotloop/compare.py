"""Is one plan faster than another? Paired processes, and a claim only where it is proven.

The unit is the pair of processes, not the step. Steps of one process agree with each other and
disagree with the next process, so an interval over steps finds gains that are not there. Two
processes that ran one after the other share what the machine was doing; their ratio is one sample.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hotloop import stats

LEAST_PAIRS = 5
RISK = 0.005
"""One-sided: how often a gain is claimed where there is none, at the most."""
LEAST_GAIN = 0.02
"""Less is not worth a change of anybody's script."""


@dataclass(frozen=True)
class Pair:
    """Seconds a step, of two processes that ran one right after the other."""

    baseline: float
    candidate: float


@dataclass(frozen=True)
class Comparison:
    pairs: tuple[Pair, ...]
    ratio: float
    """How many times as fast the candidate is; the geometric mean over the pairs."""
    low: float
    high: float
    faster: bool
    reason: str
    """Why not; empty when faster."""


def compare(pairs: Sequence[Pair], floor: float = 0.0) -> Comparison:
    """`floor`: the gain that this machine shows when a plan is compared with itself."""
    if len(pairs) < LEAST_PAIRS:
        raise ValueError(f"{len(pairs)} pairs prove nothing, at least {LEAST_PAIRS} are needed")
    # Ratios multiply, so it is their logarithms that are averaged.
    logs = [math.log(pair.baseline / pair.candidate) for pair in pairs]
    interval = stats.t_interval(logs, RISK)
    ratio, low, high = (math.exp(x) for x in (interval.mean, interval.low, interval.high))
    reason = _why_not(ratio, low, max(LEAST_GAIN, floor))
    return Comparison(tuple(pairs), ratio, low, high, not reason, reason)


def _why_not(ratio: float, low: float, least: float) -> str:
    if ratio < 1:
        return f"slower: {ratio:.3f}×"
    if ratio < 1 + least:
        return f"{ratio:.3f}× is less than the {1 + least:.3f}× that would count here"
    if low <= 1:
        return f"{ratio:.3f}× is not proven: it may be {low:.3f}×"
    return ""
