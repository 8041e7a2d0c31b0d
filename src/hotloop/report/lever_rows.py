"""The optimisations, as lines of plain text."""

from __future__ import annotations

import inspect
import json
import textwrap
from dataclasses import fields
from typing import Any

from hotloop.levers.base import Effect, Lever
from hotloop.levers.registry import LEVERS

LEAST = 24
"""Letters of a summary that are worth standing beside a name."""
EFFECTS = {
    Effect.SAME_MATH: "the same arithmetic, up to the order of roundings and the random stream",
    Effect.LOWER_PRECISION: "another number format",
    Effect.CHANGES_TRAINING: "another batch, schedule or sequence",
}


def table(levers: list[type[Lever]], room: int | None = None) -> list[str]:
    """`room`: columns of the terminal. None: it goes elsewhere, a line each."""
    width = max(len(lever.name) for lever in levers)
    wide = max(len(lever.effect) for lever in levers)
    heads = [f"  {lever.name:<{width}}  {lever.effect:<{wide}}  " for lever in levers]
    if room is None:
        return [head + lever.summary for head, lever in zip(heads, levers, strict=True)]
    indent = len(heads[0]) if room - len(heads[0]) >= LEAST else 4
    lines = []
    for head, lever in zip(heads, levers, strict=True):
        first, *rest = textwrap.wrap(lever.summary, max(room - indent, LEAST))
        lines += [head + first] if indent == len(head) else [head.rstrip(), " " * indent + first]
        lines += [" " * indent + part for part in rest]
    return lines


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
    needed = [LEVERS[name] for name in lever.requires]
    plan = {"version": 1, "levers": [_usual(one) for one in (*needed, lever)]}
    return [
        "To try it, write this into hotloop.json:",
        f"  {json.dumps(plan)}",
        "and measure, then train:",
        "  hotloop profile --plan hotloop.json SCRIPT",
        "  hotloop run --plan hotloop.json SCRIPT",
    ]


def _usual(lever: type[Lever]) -> dict[str, Any]:
    setting = {setting.name: setting.default for setting in fields(lever)}  # type: ignore[arg-type]
    return {"lever": lever.name, "setting": setting}
