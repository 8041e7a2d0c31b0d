"""The stop rule of a trial that is timed, told how slow the job turned out to be."""

from __future__ import annotations

import math

from hotloop.trial.spec import StopRule


class Stopping:
    """A step's time is the least that was seen: what is compiled in a few is no slow job."""

    def __init__(self, rule: StopRule) -> None:
        self.warm_up = rule.warm_up
        self.give_up_above = rule.give_up_above
        self.asked_from = rule.asked_from
        self._rule = rule
        self._asked = 0, 0.0
        self._least = math.inf

    def satisfied(self, steps: int, seconds: float) -> bool:
        made, took = steps - self._asked[0], seconds - self._asked[1]
        self._asked = steps, seconds
        if made > 0:
            self._least = min(self._least, took / made)
        return self._rule.satisfied(steps, seconds, self._least)
