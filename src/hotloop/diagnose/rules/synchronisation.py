"""The CPU waits for the GPU because the script wants to know a value, and the GPU then has nothing.

What a wait costs is the time that the GPU idles afterwards (`waits.py`). Where the GPU stays busy a
wait costs nothing, and is not told.
"""

from __future__ import annotations

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.gpu_time import gpu_time
from hotloop.diagnose.wait_prices import Place, priced
from hotloop.diagnose.wording import at, seconds, times

MOST_PLACES = 5
SEEN_OFTEN = 0.5
"""A step. What waits more seldom than every other step is a report now and then."""


def synchronisation(case: Case) -> Finding | None:
    if not case.on_gpu or case.inspection is None or not case.inspection.synchronisations:
        return None
    gpu = gpu_time(case)
    places = priced(case, gpu)
    if gpu is None:
        return _unpriced(places)
    step = case.figures.step.mean
    share = sum(place.seconds or 0.0 for place in places) / step
    if share < LEAST_SHARE:
        return None
    dear = [place for place in places if place.seconds][:MOST_PLACES]
    return Finding(
        rule="synchronisation",
        title=f"{at(dear[0].frame)} makes the GPU wait: {dear[0].what}, "
        f"{times(dear[0].times, 'time')} a step",
        share=share,
        remedy=_remedy(dear[0]),
        effort=Effort.LINES,
        evidence=tuple(_line(place) for place in dear),
        places=tuple(dict.fromkeys(place.frame for place in dear)),
        cause=dear[0].what,
    )


def _unpriced(places: list[Place]) -> Finding | None:
    often = [place for place in places if place.times >= SEEN_OFTEN][:MOST_PLACES]
    if not often:
        return None
    return Finding(
        rule="synchronisation",
        title=f"{at(often[0].frame)} waits for the GPU: {often[0].what}",
        share=0.0,
        remedy=_remedy(often[0]),
        effort=Effort.LINES,
        evidence=(*(_line(place) for place in often), "what that costs could not be seen"),
        places=tuple(dict.fromkeys(place.frame for place in often)),
        cause=often[0].what,
        is_limit=False,
    )


def _remedy(place: Place) -> str:
    if place.what in ("if tensor", "nonzero", "a hidden wait", "unique", "in tensor"):
        return "Let the GPU decide: torch.where, or multiplying by the mask, keeps the size fixed."
    return "Ask for it every hundredth step, for all values at once, and only after the step."


def _line(place: Place) -> str:
    cost = f", {seconds(place.seconds)} lost" if place.seconds is not None else ""
    inside = f", inside {place.inside}" if place.inside else ""
    return f"{at(place.frame)} {place.what}{inside}: {times(place.times, 'time')} a step{cost}"
