"""Which optimisations could be worth trying on a job, by what was measured of it."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.figures import Figures, training_loader
from hotloop.levers.base import Effect, Seen
from hotloop.levers.registry import LEVERS
from hotloop.measurement import Measurement

LEAST_SHARE = 0.02


@dataclass(frozen=True)
class Suggestion:
    lever: str
    share: float
    """Of a step's time: what it could win at the very most. Only trying it shows what it does."""


def suggestions(measurement: Measurement, figures: Figures, cores: int) -> tuple[Suggestion, ...]:
    """The most promising first. Only such as leave the arithmetic alone: others need a proof."""
    seen = Seen(measurement, figures, training_loader(measurement), cores)
    expected = {
        name: lever.expected(seen)
        for name, lever in LEVERS.items()
        if lever.effect_on(seen)[0] is Effect.SAME_MATH
    }
    worth = [
        Suggestion(name, one.share)
        for name, one in expected.items()
        if one.is_worth_trying and one.share >= LEAST_SHARE
    ]
    return tuple(sorted(worth, key=lambda one: -one.share))
