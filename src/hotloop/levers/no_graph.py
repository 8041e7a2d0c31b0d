"""Why torch.compile captured nothing, by what it says itself."""

from __future__ import annotations

import sys
from collections import Counter

MOST_CHARACTERS = 120
COUNTED = ("graph_break", "unimplemented")
"""torch's own counters, in which every break stands with its reason. One after which a function is
not compiled at all may stand in the second alone."""


class NoGraph:
    """Of all that this process compiles from here on, be it by the script itself."""

    def __init__(self) -> None:
        self._before = _reasons()

    def reason(self) -> str:
        """The first line of the first: a whole one is a page of hints."""
        found = [why for why in _reasons() - self._before if why.strip()]
        why = f": {found[0].strip().splitlines()[0][:MOST_CHARACTERS]}" if found else ""
        return f"torch.compile captured no graph{why}"


def _reasons() -> Counter[str]:
    """In the order in which they were met."""
    utils = sys.modules.get("torch._dynamo.utils")
    counters = utils.counters if utils else {}
    found: Counter[str] = Counter()
    for name in COUNTED:
        found.update({str(why): count for why, count in counters.get(name, {}).items()})
    return found
