"""What could help a job, by what was measured of it; and which of that to try first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hotloop.levers.registry import LEVERS
from hotloop.search.interactions import MAKES_NEEDLESS, compiles, stood_for


@dataclass(frozen=True)
class Candidate:
    lever: str
    settings: tuple[dict[str, Any], ...]
    """The most promising first."""
    share: float
    """Of a step's time, or of memory where that is the objective: what it could win at the most, by
    what was measured. 0: that cannot be told beforehand."""
    predicted: float | None = None
    """What it would win by a finding that it addresses. None: no finding speaks for it."""
    dear: tuple[dict[str, Any], ...] = ()
    """Settings whose trials take long. They come last, and only of what has helped."""
    late: tuple[dict[str, Any], ...] = ()
    """What to change in the setting that was kept, once the job has become much faster."""
    changes_training: bool = False
    """By its own account, on this job. It is tried because the user allows it."""
    worth_from: float = 1.0
    """Times as fast as it is that the job must have become before this one is worth a trial: what
    is next to nothing of a slow step may be much of a fast one."""


def most_promising_first(candidates: Sequence[Candidate], quick_first: bool) -> list[Candidate]:
    ranks = list(LEVERS)
    worth = {candidate.lever: candidate for candidate in candidates if candidate.settings}

    def place(one: Candidate) -> tuple[bool, float, float, bool, int, bool]:
        """A stand-in comes right after what it stands in for.

        Of two that are worth as much the one comes first that does the other's work too.
        """
        leader = worth.get(stood_for(one.lever) or one.lever, one)
        rank = ranks.index(leader.lever)
        waits = quick_first and compiles(leader.lever)
        modest = any(leader.lever in others for others in MAKES_NEEDLESS.values())
        return waits, -(leader.predicted or 0.0), -leader.share, modest, rank, leader is not one

    return sorted(worth.values(), key=place)
