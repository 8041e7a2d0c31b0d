"""The optimisations, as lines of plain text."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields

from hotloop.levers.base import Effect, Lever

EFFECTS = {
    Effect.SAME_MATH: "the same arithmetic, up to the order of roundings and the random stream",
    Effect.LOWER_PRECISION: "another number format",
    Effect.CHANGES_TRAINING: "another batch, schedule or sequence",
}


def table(levers: list[type[Lever]]) -> list[str]:
    width = max(len(lever.name) for lever in levers)
    return [f"  {lever.name:<{width}}  {lever.effect:<15}  {lever.summary}" for lever in levers]


def card(lever: type[Lever]) -> list[str]:
    module = inspect.getmodule(lever)
    about = (inspect.getdoc(module) or "") if module else ""
    lines = [f"{lever.name}: {lever.summary}", "", *about.splitlines(), ""]
    lines.append(f"  group     {lever.group}")
    lines.append(f"  effect    {lever.effect}: {EFFECTS[lever.effect]}")
    for label, names in (("requires", lever.requires), ("conflicts", lever.conflicts)):
        if names:
            lines.append(f"  {label:<9} {', '.join(names)}")
    for setting in fields(lever):  # type: ignore[arg-type]
        lines.append(f"  setting   {setting.name} = {setting.default!r}")
    return [*lines, "", *_how_to_try(lever)]


def _how_to_try(lever: type[Lever]) -> list[str]:
    setting = {setting.name: setting.default for setting in fields(lever)}  # type: ignore[arg-type]
    plan = {"version": 1, "levers": [{"lever": lever.name, "setting": setting}]}
    return [
        "To try it, write this into hotloop.json:",
        f"  {json.dumps(plan)}",
        "and measure, then train:",
        "  hotloop profile --plan hotloop.json SCRIPT",
        "  hotloop run --plan hotloop.json SCRIPT",
    ]
