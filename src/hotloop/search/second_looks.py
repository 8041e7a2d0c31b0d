"""When an optimisation that was refused is worth measuring again. Rules over what was measured.

Each rule yields ideas: settings to add to the best plan so far. They are taken in this order, one
at a time, and the rules are asked again after each, for what was kept may have raised new ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hotloop.plan import LeverSetting, Plan
from hotloop.search.interactions import PACK, are_partners, names

HARMLESS = 0.96
"""The gain of one that hurt no more than chance may have made it."""


@dataclass(frozen=True)
class Look:
    """One trial of the past, as far as later ones depend on it."""

    added: tuple[LeverSetting, ...]
    gain: float | None
    """How many times as good as the best until then. None: it came to nothing."""
    kept: bool


@dataclass(frozen=True)
class Idea:
    name: str
    """Each is taken up once."""
    added: tuple[LeverSetting, ...]


def reopened(plan: Plan, looks: Sequence[Look]) -> Iterator[Idea]:
    """Refused before one of its partners was accepted: it may be worth more by now."""
    for lever in _refused(plan, looks):
        if _partners_joined(lever, looks, since=max(_looks_at(lever, looks))):
            yield Idea(f"{lever} again", (_best_setting(lever, looks),))


def together(plan: Plan, looks: Sequence[Look]) -> Iterator[Idea]:
    """All at once what may have lost alone, or shown nothing.

    A launch-bound network becomes slower by bf16, slower by channels last, and nearly three times
    as fast by both together with compilation. And where two things are waited for by turns, what
    speeds up one of them shows nothing until the other is faster too.
    """
    last = {lever: looks[max(_looks_at(lever, looks))].gain for lever in _refused(plan, looks)}
    pack = PACK if "compile" in {*names(plan), *last} else ()  # it is what heals the others' losses
    worth = [lever for lever, gain in last.items() if lever in pack or (gain or 0) > HARMLESS]
    if len(worth) > 1:
        yield Idea("together", tuple(_best_setting(lever, looks) for lever in worth))


def other_settings(plan: Plan, looks: Sequence[Look]) -> Iterator[Idea]:
    """An accepted one in the setting that came second, when partners joined since it was measured.

    How a model is best compiled depends on what is compiled.
    """
    for chosen in plan.levers:
        others = {
            index: gain
            for index, gain in _looks_at(chosen.lever, looks).items()
            if chosen not in looks[index].added
        }
        if others and _partners_joined(chosen.lever, looks, since=max(others)):
            second = looks[max(others, key=others.__getitem__)]
            yield Idea(f"another {chosen.lever}", second.added)


def _refused(plan: Plan, looks: Sequence[Look]) -> list[str]:
    """Measured and not in the plan, in the order of their first look."""
    seen = dict.fromkeys(chosen.lever for look in looks for chosen in look.added)
    return [lever for lever in seen if lever not in names(plan) and _looks_at(lever, looks)]


def _looks_at(lever: str, looks: Sequence[Look]) -> dict[int, float]:
    """When it was measured by itself, and the gain."""
    return {
        index: look.gain
        for index, look in enumerate(looks)
        if look.gain is not None and [chosen.lever for chosen in look.added] == [lever]
    }


def _best_setting(lever: str, looks: Sequence[Look]) -> LeverSetting:
    gains = _looks_at(lever, looks)
    return looks[max(gains, key=gains.__getitem__)].added[0]


def _partners_joined(lever: str, looks: Sequence[Look], since: int) -> bool:
    joined: Iterable[str] = (
        chosen.lever for look in looks[since + 1 :] if look.kept for chosen in look.added
    )
    return any(other != lever and are_partners(lever, other) for other in joined)
