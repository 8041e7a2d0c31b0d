"""Plans and their optimisations in words."""

from __future__ import annotations

import json
from typing import Any

from hotloop.plan import LeverSetting, Plan

NOTHING = "as it is"


def plan_words(plan: Plan) -> str:
    return " + ".join(setting_words(chosen) for chosen in plan.levers) or NOTHING


def setting_words(chosen: LeverSetting) -> str:
    """Such as "compile (reduce-overhead)"."""
    words = [_value(name, value) for name, value in chosen.setting.items() if value is not False]
    return f"{chosen.lever} ({', '.join(words)})" if words else chosen.lever


def key(plan: Plan) -> frozenset[str]:
    """Tells plans apart by their optimisations alone, whatever they were made for."""
    return frozenset(_key(chosen) for chosen in plan.levers)


def beyond(plan: Plan, less: Plan) -> tuple[LeverSetting, ...]:
    """What `plan` has and `less` has not, or has in another setting."""
    known = key(less)
    return tuple(chosen for chosen in plan.levers if _key(chosen) not in known)


def _key(chosen: LeverSetting) -> str:
    return json.dumps([chosen.lever, chosen.setting], sort_keys=True)


def _value(name: str, value: Any) -> str:
    if value is True:
        return name
    return value if isinstance(value, str) else f"{name} {value}"
