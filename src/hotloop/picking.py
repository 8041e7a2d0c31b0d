"""Single numbers out of a long list that is still text: the others are never made into numbers."""

from __future__ import annotations

from typing import Any

MOST_DIGITS = 18
"""That surely fit into 64 bits."""


def picked(text: bytes, places: list[int]) -> Any:
    """The numbers at these places of a list in JSON, as an array of 64-bit integers.

    None where that is not so simple: the list holds anything but digits and commas, or a place
    that there is not. So whatever is wrong with a list is left to those who read all of it.
    """
    import numpy as np

    letters, wanted = np.frombuffer(text, np.uint8), np.array(places, np.int64)
    between = np.flatnonzero(letters - ord("0") > 9)  # brackets and commas: the type has no sign
    commas = between[1:-1]
    if letters[0] != ord("[") or (letters[commas] != ord(",")).any():
        return None
    if not places or min(places) < 0 or max(places) > len(commas):
        return None
    begins, ends = between[wanted] + 1, between[wanted + 1]
    widest = int(np.max(ends - begins))
    if not 0 < widest <= MOST_DIGITS:
        return None
    found = np.zeros(len(wanted), np.int64)
    for at in (ends - back for back in range(widest, 0, -1)):
        # What lies before a number that is shorter than others counts as nothing.
        digits = np.where(at >= begins, letters[at] - ord("0"), 0)
        found = 10 * found + digits
    return found
