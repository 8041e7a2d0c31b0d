"""What is not in the plan, as plain rows: why, and together what has the same reason."""

from __future__ import annotations

from collections.abc import Iterable

from hotloop.study import Refused


def untried(refused: Iterable[Refused]) -> tuple[tuple[str, str], ...]:
    """Names and the reason, in the order in which the reasons first come."""
    return grouped((one.lever, one.reason) for one in refused if not one.tried)


def why(one: Refused) -> str:
    """Its reason; of one whose trial failed, also where that trial's whole output lies."""
    if not one.log:
        return one.reason
    return f"{one.reason.rstrip('.')}; its output is in {one.log}, beside the study"


def grouped(named: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Of names and their reasons."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in named:
        by_reason.setdefault(reason, []).append(name)
    return tuple((", ".join(names), reason) for reason, names in by_reason.items())
