"""Which optimisations are worth a trial on a job, by what was measured of it, and which are not."""

from __future__ import annotations

from hotloop.figures import Figures, training_loader
from hotloop.levers.base import Effect, Seen
from hotloop.levers.registry import LEVERS
from hotloop.measurement import Measurement
from hotloop.search.climb import Candidate
from hotloop.study import Options, Refused
from hotloop.suggest import LEAST_SHARE

HOW_FAR = list(Effect)
"""From what changes least to what changes most."""


def promising(
    measurement: Measurement, figures: Figures, cores: int, options: Options
) -> tuple[tuple[Candidate, ...], tuple[Refused, ...]]:
    """The most promising first, and the others with the reason."""
    seen = Seen(measurement, figures, training_loader(measurement), cores)
    candidates: list[Candidate] = []
    refused: list[Refused] = []
    for name, lever in LEVERS.items():
        reason = _out_of_bounds(name, lever.effect, options)
        expected = lever.expected(seen)
        settings = () if reason or expected.reason else tuple(lever.settings(seen))
        reason = reason or expected.reason
        if not reason and expected.share < LEAST_SHARE:
            reason = f"it could win {expected.share:.1%} of a step at the very most"
        if reason or not settings:
            refused.append(Refused(name, reason or "no setting of it is left to try", tried=False))
        else:
            candidates.append(Candidate(name, settings, expected.share))
    return tuple(sorted(candidates, key=lambda one: -one.share)), tuple(refused)


def _out_of_bounds(name: str, effect: Effect, options: Options) -> str:
    """Why the user does not want it; empty when they do."""
    if options.only and name not in options.only:
        return "it is not among --only"
    if name in options.skip:
        return "left out by --skip"
    if HOW_FAR.index(effect) > HOW_FAR.index(Effect(options.effect)):
        return f"its effect is {effect}, more than --effect allows"
    return ""
