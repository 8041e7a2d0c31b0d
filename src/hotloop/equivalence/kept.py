"""What models keep beside what is trained: what single steps change of it, and how they count.

Of numbers like a running mean the change is compared with that of the yardstick, tensor by tensor:
one may hold averages and the next a million codes, so what rounding does to one says nothing of
another. What counts steps is compared exactly, also with how the steps before have left it.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator

from hotloop.equivalence.arithmetic import ONE_TENSOR, Closeness, distance_in
from hotloop.evidence import Difference, Evidence

NOT_COMPARED = "the buffers of no step could be compared"
SAID = {
    "change": "step {}: {} changes by {:g} instead of {:g}",
    "count": "before step {}: {} is {:g} instead of {:g}",
}


class Kept:
    """Of a candidate, beside a yardstick. Judged are steps that both were seen to have made."""

    def __init__(self, candidate: Evidence, yardstick: Evidence, factor: float) -> None:
        """`factor`: how many times the yardstick may be exceeded."""
        self._allowed = factor * ONE_TENSOR
        self._steps = steps_of(candidate) & steps_of(yardstick)
        self._candidate = [one for one in candidate.differences if one.step in self._steps]
        self._yardstick = {
            (one.step, one.quantity, one.tensor): one for one in yardstick.differences
        }
        self._counters = set(self._counting())

    def differences(self) -> Iterator[str]:
        """Of what counts. One of each kind is named."""
        for quantity, said in SAID.items():
            wrong = [
                one
                for one in self._candidate
                if one.quantity == quantity and one.tensor in self._counters and one.difference
            ]
            if wrong:
                first = min(wrong, key=lambda one: one.step)
                others = len({one.tensor for one in wrong}) - 1
                now, then = first.along * first.reference, first.reference
                more = f", and {others} more" if others else ""
                yield said.format(first.step + 1, first.tensor, now, then) + more
                return  # what is counted otherwise is also found otherwise

    def closeness(self) -> list[Closeness]:
        return [
            Closeness(f"the change of {tensor}", statistics.median(ratios) / self._allowed)
            for tensor, ratios in self._ratios().items()
        ]

    def hidden(self) -> int:
        """Of how many tensors rounding alone changes as much as a step does."""
        shares: dict[str, list[float]] = defaultdict(list)
        for one, size in self._measured():
            shares[one.tensor].append(self._allowed * size / one.reference if one.reference else 0)
        return sum(statistics.median(found) >= 1 for found in shares.values())

    def _ratios(self) -> dict[str, list[float]]:
        ratios: dict[str, list[float]] = defaultdict(list)
        for one, size in self._measured():
            ratios[one.tensor].append(distance_in(one.difference, size))
        return ratios

    def _measured(self) -> Iterator[tuple[Difference, float]]:
        """Beside what rounding does to each. A yardstick that is not a number measures nothing."""
        for one in self._candidate:
            if one.quantity == "change" and one.tensor not in self._counters:
                noise = self._noise(one)
                if noise is not None:
                    yield one, max(noise, one.ulp)

    def _noise(self, one: Difference) -> float | None:
        known = self._yardstick.get((one.step, one.quantity, one.tensor))
        return 0.0 if known is None else known.difference  # it changed nowhere, so equally

    def _counting(self) -> Iterator[str]:
        """Whole numbers that each step changes by as much, with rounding as without."""
        changes: dict[str, list[Difference]] = defaultdict(list)
        for one in self._candidate:
            if one.quantity == "change":
                changes[one.tensor].append(one)
        for tensor in {one.tensor for one in self._candidate if one.quantity == "count"}:
            rates = {one.reference for one in changes[tensor]}
            is_steady = len(rates) == 1 and len(changes[tensor]) == len(self._steps)
            if is_steady and 0 not in rates and not self._depends_on_rounding(tensor):
                yield tensor

    def _depends_on_rounding(self, tensor: str) -> bool:
        return any(
            one.difference != 0.0 for (_, _, name), one in self._yardstick.items() if name == tensor
        )


def steps_of(evidence: Evidence) -> set[int]:
    return {seen.step for seen in evidence.kept or ()}


def not_judged(candidate: Evidence, reference: Evidence, yardstick: Evidence) -> str:
    """Why nothing is known of what models keep, where they keep something."""
    if not any(seen.tensors for seen in reference.kept or ()):
        return ""
    judged = steps_of(candidate) & steps_of(yardstick)
    return "" if judged else NOT_COMPARED


def compared(candidate: Evidence) -> Iterator[str]:
    count = max((seen.tensors for seen in candidate.kept or ()), default=0)
    changed = {one.tensor for one in candidate.differences if one.quantity == "change"}
    if count:
        those = "1 buffer or weight" if count == 1 else f"{count} buffers or weights"
        yield (
            f"{those} that nothing trains, as the same steps leave them: "
            f"{len(changed) or 'none'} of them changed"
        )


def not_compared(candidate: Evidence, reference: Evidence, hidden: int) -> Iterator[str]:
    if reference.kept is None:
        yield "buffers, such as running statistics: an earlier hotloop did not look at them"
    in_part = max((seen.in_part for seen in candidate.kept or ()), default=0)
    if in_part:
        yield f"all numbers of {in_part} large buffers or untrained weights: some of each were"
    if hidden:
        yield f"what steps change in {hidden} of these buffers: rounding alone changes as much"
