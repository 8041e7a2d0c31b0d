"""A plan as a ladder: its optimisations in the order in which they were found to help.

They are applied in another order. But one that loses until another is there would stand on a ladder
of that order as a step down.
"""

from __future__ import annotations

from hotloop.plan import LeverSetting, Plan
from hotloop.search.climb import Climb
from hotloop.search.interactions import missing, names


def climbed(plan: Plan, climb: Climb | None) -> tuple[LeverSetting, ...]:
    """What the climb began with comes first; what was added after it, last."""
    kept = [one for one in climb.tried if one.kept] if climb else []
    known = names(climb.plan) if climb else ()

    def place(chosen: LeverSetting) -> int:
        tried = [index for index, one in enumerate(kept) if chosen.lever in one.lever.split("+")]
        # Accepted twice, it was accepted in another setting the second time: on the same rung.
        return tried[0] if tried else -1 if chosen.lever in known else len(kept)

    return tuple(sorted(plan.levers, key=place))


def rungs(plan: Plan, climb: Climb | None) -> tuple[Plan, ...]:
    """The plans on the way up, without the whole one, each in the order of application.

    Not those that cannot be: of two that were accepted together one may need the other.
    """
    order = climbed(plan, climb)
    on_the_way = [
        Plan(tuple(one for one in plan.levers if one in order[:count]))
        for count in range(1, len(order))
    ]
    return tuple(rung for rung in on_the_way if not _lacks(rung))


def _lacks(plan: Plan) -> bool:
    return any(missing(plan, lever) for lever in names(plan))
