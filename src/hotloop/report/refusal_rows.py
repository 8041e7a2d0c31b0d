"""What was not even tried, as plain rows: those together that have the same reason."""

from __future__ import annotations

from collections.abc import Iterable

from hotloop.study import Refused


def untried(refused: Iterable[Refused]) -> tuple[tuple[str, str], ...]:
    """Names and the reason, in the order in which the reasons first come."""
    by_reason: dict[str, list[str]] = {}
    for one in refused:
        if not one.tried:
            by_reason.setdefault(one.reason, []).append(one.lever)
    return tuple((", ".join(names), reason) for reason, names in by_reason.items())
