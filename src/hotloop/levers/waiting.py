"""What all optimisations of loading ask first: does the job wait for its data at all?"""

from __future__ import annotations

from hotloop.levers.base import Seen

WAITING = 0.02
"""Of a step. Less is what asking a loader takes by itself."""


def hardly_waits(seen: Seen) -> str:
    """Why faster loading wins nothing; empty where it may."""
    share = seen.share("data")
    return f"the job waits for data during {share:.1%} of a step" if share < WAITING else ""


def needless(seen: Seen) -> str:
    """The same of those that change what a loader does."""
    return "the script has no loader" if seen.loader is None else hardly_waits(seen)
