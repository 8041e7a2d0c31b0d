"""Pure statistics over plain numbers. Knows nothing of torch, of jobs or of trials."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

MANY = 2000
"""Values from which on a loop of Python's takes longer than it takes to import numpy's."""


@dataclass(frozen=True)
class Summary:
    count: int
    mean: float
    spread: float
    """Standard deviation."""
    p50: float
    p95: float
    p99: float
    fastest: float
    slowest: float


def summary(values: Sequence[float]) -> Summary:
    if not values:
        raise ValueError("nothing to summarise")
    ordered = sorted(values)
    return Summary(
        count=len(values),
        mean=statistics.fmean(values),
        spread=_spread(values),
        p50=_percentile(ordered, 50),
        p95=_percentile(ordered, 95),
        p99=_percentile(ordered, 99),
        fastest=ordered[0],
        slowest=ordered[-1],
    )


def _spread(values: Sequence[float]) -> float:
    """As `statistics.stdev`, which counts in fractions and takes ten times as long."""
    if len(values) < 2:
        return 0.0
    mean = statistics.fmean(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def percentile(values: Sequence[float], percent: float) -> float:
    """Linear between the two nearest ranks, as numpy's default."""
    return _percentile(sorted(values), percent)


def _percentile(ordered: Sequence[float], percent: float) -> float:
    position = (len(ordered) - 1) * percent / 100
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def warm_up(values: Sequence[float], at_least: int = 0) -> int:
    """How many of the first values belong to the warm-up rather than to the steady state.

    The marginal standard error rule (White, "An effective truncation heuristic for bias reduction
    in simulation output", 1997): drop the beginning whose removal makes the mean of what is left
    most certain. At most half is dropped. Values are first clipped to the spread of their second
    half, so that a single slow step later on (an evaluation, a checkpoint) cannot make everything
    before it look like warm-up, while a long first step still counts as one.
    """
    half = len(values) // 2
    if half < 2:
        return min(at_least, max(len(values) - 1, 0))
    low, high = _fences(values[half:])
    clipped = [low if value < low else high if value > high else value for value in values]
    errors = (_marginal_errors if len(values) < MANY else _errors_of_many)(clipped)[: half + 1]
    dropped = errors.index(min(errors))
    return min(max(dropped, at_least), len(values) - 1)


def _fences(values: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(values)
    quarter, median, three_quarters = (_percentile(ordered, p) for p in (25, 50, 75))
    reach = max(3 * (three_quarters - quarter), 0.02 * median)
    return quarter - reach, three_quarters + reach


def _marginal_errors(values: Sequence[float]) -> list[float]:
    """For every k the variance of values[k:] over their number, in one pass from the end."""
    centre = values[-1]  # near the mean: sums of squares then lose no digits
    total = squares = 0.0
    errors: list[float] = []
    for count, value in enumerate(reversed(values), start=1):
        total += value - centre
        squares += (value - centre) ** 2
        errors.append((squares - total * total / count) / count**2)
    return errors[::-1]


def _errors_of_many(values: Sequence[float]) -> list[float]:
    """The same to the last bit, by numpy: worth its import where there are thousands."""
    import numpy as np

    apart = np.asarray(values)[::-1] - values[-1]
    counts = np.arange(1, len(values) + 1)
    errors = (np.cumsum(apart**2) - np.cumsum(apart) ** 2 / counts) / counts**2
    found: list[float] = errors[::-1].tolist()
    return found


@dataclass(frozen=True)
class Interval:
    mean: float
    low: float
    high: float


def t_interval(values: Sequence[float], one_sided: float) -> Interval:
    """The mean, and the bounds that it exceeds or stays under with a risk of `one_sided` each."""
    from scipy.special import stdtrit  # the quantile alone: scipy.stats takes a second to import

    if len(values) < 2:
        raise ValueError("an interval needs at least two values")
    mean = statistics.fmean(values)
    error = statistics.stdev(values) / math.sqrt(len(values))
    reach = float(stdtrit(len(values) - 1, 1 - one_sided)) * error
    return Interval(mean, mean - reach, mean + reach)


def pooled_interval(
    values: Sequence[float], groups: Sequence[Sequence[float]], one_sided: float
) -> Interval:
    """As `t_interval`, with the spread of all groups, each around its own mean.

    Where the groups were measured against the same runs, as here, they repeat one another in part:
    their squared errors correlate by a quarter, and count as fewer (Satterthwaite).
    """
    from scipy.special import stdtrit

    many = [group for group in groups if len(group) > 1]
    if not many:
        raise ValueError("an interval needs a group of at least two values")
    freedom = sum(len(group) - 1 for group in many)
    squares = sum(statistics.variance(group) * (len(group) - 1) for group in many)
    mean = statistics.fmean(values)
    error = math.sqrt(squares / freedom / len(values))
    counted = freedom / (1 + (len(many) - 1) / 4)
    reach = float(stdtrit(counted, 1 - one_sided)) * error
    return Interval(mean, mean - reach, mean + reach)


def difference_interval(
    first: Sequence[float], second: Sequence[float], one_sided: float
) -> Interval | None:
    """Of the second mean less the first, for independent samples that spread alike.

    One of them may be a single value: the other then tells how far values lie apart. None where
    neither does.
    """
    from scipy.special import stdtrit

    freedom = len(first) + len(second) - 2
    if not first or not second or freedom < 1:
        return None
    difference = statistics.fmean(second) - statistics.fmean(first)
    squares = sum(_spread(each) ** 2 * (len(each) - 1) for each in (first, second))
    error = math.sqrt(squares / freedom * (1 / len(first) + 1 / len(second)))
    reach = float(stdtrit(freedom, 1 - one_sided)) * error
    return Interval(difference, difference - reach, difference + reach)
