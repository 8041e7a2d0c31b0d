"""By what an optimizer is known again in another run of the script.

Mostly by its turn. But a library that keeps one for every parameter may build them in the order of
a set, which is another in every process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

LOOKS = 32
"""Parameters of which one element is looked at."""

Mark = tuple[str, str]
"""The shapes of what it trains; and numbers from there, as they were before its first step."""

ALIKE: tuple[Callable[[Mark], object], ...] = (
    lambda mark: mark,
    lambda mark: mark[0],
    lambda mark: "",
)
"""The most telling first. Where an optimizer came late its numbers differ, and its turn decides."""


def mark(optimizer: Any) -> Mark:
    return shapes(optimizer), repr(sample(optimizer))


def shapes(optimizer: Any) -> str:
    return repr([tuple(parameter.shape) for parameter in parameters(optimizer)])


def sample(optimizer: Any) -> list[Any]:
    """One element of each of some parameters, as numbers."""
    every = [p for p in parameters(optimizer) if p.numel()]
    some = every[:: len(every) // LOOKS + 1]
    return [p.detach().flatten()[p.numel() // 2].item() for p in some]


def parameters(optimizer: Any) -> list[Any]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def matched(here: Mapping[int, Mark], there: Mapping[int, Mark]) -> dict[int, int]:
    """Which number each has there, none twice. Of several that are alike its own, or the first."""
    found: dict[int, int] = {}
    for alike in ALIKE:
        for number, own in here.items():
            free = [n for n in there if n not in found.values() and alike(there[n]) == alike(own)]
            if number not in found and free:
                found[number] = number if number in free else free[0]
    for number in here:
        if number not in found:
            taken = found.values()
            found[number] = number if number not in taken else max(taken) + 1
    return found
