"""Which lines run in most steps, by where the training thread was seen, and when."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict

from hotloop.diagnose.base import Case
from hotloop.diagnose.sightings import innermost
from hotloop.diagnose.steady import step_ends

FEWEST = 5
"""Steps in which a line must have been seen."""
AS_OFTEN = 0.4
"""Of the steps in which it would have been, by how long it takes, if it ran in all of them."""


def in_most_steps(case: Case) -> set[tuple[str, int]]:
    """Of the user's innermost lines. One that runs seldom is seen in few steps, for long in each:
    what was counted in a step or two knows nothing of it."""
    if case.inspection is None or case.looked is None or not case.inspection.samples.time_ns:
        return set()
    samples, ends = case.inspection.samples, step_ends(case.looked.events)
    lines = [innermost([samples.frames[i] for i in stack]) for stack in samples.stacks]
    steps: dict[tuple[str, int], set[int]] = defaultdict(set)
    spent: dict[tuple[str, int], int] = defaultdict(int)
    every: set[int] = set()
    seen = zip(samples.time_ns, samples.stack, samples.weight_ns, strict=True)
    for time_ns, stack, weight in seen:
        step, line = bisect_left(ends, time_ns), lines[stack]
        every.add(step)
        if line is not None:
            steps[line.file, line.line].add(step)
            spent[line.file, line.line] += weight
    usual = sum(samples.weight_ns) / len(samples.weight_ns)
    whole = max(every) - min(every) + 1

    def often(place: tuple[str, int]) -> bool:
        expected = whole * min(spent[place] / whole / usual, 1.0)
        return len(steps[place]) >= max(FEWEST, AS_OFTEN * expected)

    return {place for place in steps if often(place)}
