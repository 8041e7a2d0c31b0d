"""Does a small gain hold when it is looked at again?

A climb believes one process each. On a busy machine two processes of one job differ by more than
many a gain, so that a job with nothing to win seems to win something every other time; and to show
that it trains the same, and then that it is no faster, takes longer than all that came before. The
trials made here decide only whether to go on: what is proven later is proven by others.
"""

from __future__ import annotations

import math
import statistics

from hotloop.plan import Plan
from hotloop.search.climb import Bench, BudgetSpent
from hotloop.search.compare import counts
from hotloop.search.rounds import Rounds

CLOSE = 1.15
"""Times as fast: more than that is seldom chance."""
LEAST = (1.0, counts(0.0))
"""What the plan must come to on average, after each round."""
AGAIN = "again"

_START, _PLAN = "the start", "the plan"


def doubts(start: Plan, plan: Plan, gain: float, bench: Bench) -> str:
    """Why the plan is not believed to be faster; empty when it is, or there was no time to ask."""
    if gain >= CLOSE:
        return ""
    rounds = Rounds({_START: start, _PLAN: plan}, bench, (_START, _PLAN), AGAIN)
    try:
        for least in LEAST:
            rounds.run_one([_START, _PLAN])
            if rounds.failed:
                return ""  # which the proof will find, and say
            pairs = rounds.pairs(_START, _PLAN)
            ratio = math.exp(
                statistics.fmean(math.log(one.baseline / one.candidate) for one in pairs)
            )
            if ratio < least:
                return f"looked at again, it was {ratio:.3f}× as fast"
    except BudgetSpent:
        pass
    return ""
