"""Is one plan faster than another? Paired processes, and a claim only where it is proven.

The unit is the pair of processes, not the step. Steps of one process agree with each other and
disagree with the next process, so an interval over steps finds gains that are not there. Two
processes that ran one after the other share what the machine was doing; their ratio is one sample.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from hotloop import stats

LEAST_PAIRS = 5
RISK = 0.005
"""One-sided: how often a gain is claimed where there is none, at the most."""
LEAST_GAIN = 0.02
"""Less is not worth a change of anybody's script."""
LEAST_ADDED = 0.01
"""Less is not worth a further one, where the script is changed already."""
CERTAIN, SURE, LIKELY = 0.001, 0.01, 0.1
"""Risks of a wrong word on one part of a plan, where the plan as a whole is proven."""

DISTURBED, MOST_DISTURBED = 2.0, 2
"""Times as long as usual, and how many pairs may be left out for it. Processes of one job differ by
a tenth, by a third on a busy machine: more is another program's doing."""


@dataclass(frozen=True)
class Pair:
    """Seconds a step, of two processes that ran one right after the other."""

    baseline: float
    candidate: float


@dataclass(frozen=True)
class Comparison:
    pairs: tuple[Pair, ...]
    ratio: float
    """How many times as fast the candidate is; the geometric mean over the pairs. 1 without any."""
    low: float
    high: float
    faster: bool
    reason: str
    """Why not; empty when faster."""
    disturbed: tuple[Pair, ...] = ()
    """Further pairs, which do not count."""


def compare(
    pairs: Sequence[Pair], floor: float = 0.0, least_pairs: int = LEAST_PAIRS
) -> Comparison:
    """`floor`: the gain that this machine shows when a plan is compared with itself."""
    if len(pairs) < least_pairs:
        raise ValueError(f"{len(pairs)} pairs prove nothing, at least {least_pairs} are needed")
    interval = stats.t_interval(_logs(pairs), RISK)
    ratio, low, high = (math.exp(x) for x in (interval.mean, interval.low, interval.high))
    reason = _why_not(ratio, low, counts(floor))
    return Comparison(tuple(pairs), ratio, low, high, not reason, reason)


def part(
    pairs: Sequence[Pair], alike: Sequence[Sequence[Pair]], risk: float = LIKELY
) -> Comparison:
    """`alike`: pairs that spread as these do, and which the spread is taken from."""
    interval = stats.pooled_interval(_logs(pairs), [_logs(each) for each in alike], risk)
    ratio, low, high = (math.exp(x) for x in (interval.mean, interval.low, interval.high))
    reason = _why_not(ratio, low, worth_adding(to_others=True))
    return Comparison(tuple(pairs), ratio, low, high, not reason, reason)


def failed(pairs: Sequence[Pair], reason: str) -> Comparison:
    """A process came to nothing: there is no claim, whatever the pairs before it say."""
    ratio = math.exp(statistics.fmean(_logs(pairs))) if pairs else 1.0
    return Comparison(tuple(pairs), ratio, ratio, ratio, False, reason)


def counts(floor: float) -> float:
    """The least ratio that is worth a claim."""
    return 1 + max(LEAST_GAIN, floor)


def worth_adding(*, to_others: bool) -> float:
    """The least ratio for which an optimisation is taken into a plan."""
    return 1 + (LEAST_ADDED if to_others else LEAST_GAIN)


def undisturbed(pairs: Sequence[Pair]) -> tuple[list[Pair], list[Pair]]:
    """Those that count, and those whose baseline something else has slowed down.

    The baseline alone: such a pair speaks for the candidate, so that the gain becomes smaller
    without it, if surer. A candidate that is slow now and then is a slow candidate.
    """
    if len(pairs) <= MOST_DISTURBED:
        return list(pairs), []
    usual = statistics.median(pair.baseline for pair in pairs)
    slow = sorted(pairs, key=lambda pair: pair.baseline)[-MOST_DISTURBED:]
    slow = [pair for pair in slow if pair.baseline > DISTURBED * usual]
    return [pair for pair in pairs if pair not in slow], slow


def self_comparison_floor(baselines: Sequence[float]) -> float:
    """The gain that chance may show here, by what the same job took from one round to the next.

    Two standard errors of the successive ratios. Unlike the interval it knows nothing of the
    candidate, and so keeps in check pairs that agree with each other by luck.
    """
    logs = _logs([Pair(*both) for both in itertools.pairwise(baselines)])
    if len(logs) < 2:
        return 0.0
    return math.exp(2 * statistics.stdev(logs) / math.sqrt(len(logs))) - 1


def _logs(pairs: Sequence[Pair]) -> list[float]:
    """Ratios multiply, so it is their logarithms that are averaged."""
    return [math.log(pair.baseline / pair.candidate) for pair in pairs]


def _why_not(ratio: float, low: float, least: float) -> str:
    if ratio < 1:
        return f"slower: {ratio:.3f}×"
    if ratio < least:
        return f"{ratio:.3f}× is less than the {least:.3f}× that would count here"
    if low <= 1:
        return f"{ratio:.3f}× is not proven: it may be {low:.3f}×"
    return ""
