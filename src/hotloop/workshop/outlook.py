"""About how many runs of the script a search will take, and how many of them come at its end."""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.search.climb import Candidate
from hotloop.workshop.watching import Outlook

TO_PROVE, TO_EXAMINE, TO_SOAK = 10, 7, 3
"""Runs."""
TO_PROVE_A_PART = 5
MOST_KEPT_BACK = 0.7
"""Of the budget."""


def outlook(candidates: Sequence[Candidate], seconds: float) -> Outlook:
    """At the least nothing helps; at the most everything does, and is proven one by one.

    `seconds`: what a run takes.
    """
    if not candidates:
        return Outlook((1, 1), (seconds, seconds))
    settings = sum(len(one.settings) for one in candidates)
    least = 1 + settings
    afterwards = TO_PROVE + TO_PROVE_A_PART * len(candidates) + TO_EXAMINE + TO_SOAK
    most = 1 + 2 * settings + afterwards
    return Outlook((least, most), (least * seconds, most * seconds))


def kept_back(budget: float | None, seconds: float) -> float:
    """Of the budget, for what comes after the climb; but the climb is not to starve."""
    needed = (TO_PROVE + TO_EXAMINE + TO_SOAK) * seconds
    return min(needed, MOST_KEPT_BACK * (budget or 0.0))
