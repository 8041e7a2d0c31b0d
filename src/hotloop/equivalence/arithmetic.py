"""The arithmetic of single steps, compared tensor by tensor against a yardstick.

The yardstick is the same job with noise of the size of one rounding in every operation. Its own
distance from the reference is what rounding may do to this very model at this very step; a fixed
tolerance would be too tight for one model and blind for the next.

Judged by the median over the compared steps. Where a rounding decides which of two numbers is the
larger, as in a ReLU or a maximum, single steps differ by much more than rounding and mean nothing.

A gradient that is zero but for rounding, as that of the bias of an attention's keys, says nothing;
but an optimizer that divides it by its own size makes a whole update of it, in either direction. So
a tensor's update is judged where its gradient is known: if that is unknown of about as many numbers
in the yardstick. All updates together are judged everywhere.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hotloop.evidence import Difference

QUANTITIES = ("gradient", "update")
ONE_TENSOR = 2.0
"""A tensor by itself may differ by so much more than all of them together: there are many."""
ALIKE, FEW = 3, 4
"""Rounding may decide of so many times as many numbers as in the yardstick, and of a few more."""
ANOTHER = 0.5
"""So far from the reference, relative to it, is another gradient, whatever the yardstick allows.

Unrelated ones are 1.4 apart. Where rounding alone leads so far, nothing can be shown.
"""


@dataclass(frozen=True)
class Closeness:
    """How far a quantity is from the reference, in units of what would still pass."""

    what: str
    ratio: float


def closeness(
    candidate: Sequence[Difference], yardstick: Sequence[Difference], factor: float
) -> list[Closeness]:
    """The farthest first. `factor`: how many times the yardstick may be exceeded."""
    found: list[Closeness] = []
    for quantity in QUANTITIES:
        here = _by_step(candidate, quantity)
        there = _by_step(yardstick, quantity)
        # A yardstick that is not a number measures nothing.
        steps = [step for step in here if step in there and _is_finite(there[step])]
        if steps:
            found += _of_quantity(quantity, [(here[s], there[s]) for s in steps], factor)
    return sorted(found, key=lambda one: -one.ratio)


def lost(candidate: Sequence[Difference]) -> Iterator[str]:
    """Tensors without a number to compare."""
    for tensor, one in {d.tensor: d for d in candidate if d.difference is None}.items():
        yield f"step {one.step + 1}: the {one.quantity} of {tensor} is missing or not a number"


_Step = dict[str, Difference]


def _of_quantity(
    quantity: str, steps: list[tuple[_Step, _Step]], factor: float
) -> Iterator[Closeness]:
    totals, along = [], []
    by_tensor: dict[str, list[float]] = defaultdict(list)
    for here, there in steps:
        reference = _total(one.reference for one in here.values())
        noise = _total(one.difference for one in there.values())
        noise = max(noise, _total(one.ulp for one in here.values())) / (reference or 1.0)
        distance = _total(one.difference for one in here.values()) / (reference or 1.0)
        totals.append(distance_in(distance, min(noise, ANOTHER / factor)))
        along.append(_along(here, there, noise))
        for name, one in here.items():
            other = there.get(name)
            size = max(other.difference or 0.0 if other else 0.0, noise * one.reference, one.ulp)
            by_tensor[name].append(distance_in(_judged(one, other), size))
    yield Closeness(f"the {quantity}s", statistics.median(totals) / factor)
    yield Closeness(f"the size of the {quantity}s", statistics.median(along) / factor)
    for name, ratios in by_tensor.items():
        what = f"the {quantity} of {name}"
        yield Closeness(what, statistics.median(ratios) / (factor * ONE_TENSOR))


def _along(here: _Step, there: _Step, noise: float) -> float:
    """How much longer or shorter than the reference: noise is as often the one as the other."""
    allowed = max(abs(_projection(there) - 1), noise**2, 1e-6)
    return abs(_projection(here) - 1) / allowed


def _projection(step: _Step) -> float:
    weights = sum(one.reference**2 for one in step.values())
    return sum(one.along * one.reference**2 for one in step.values()) / weights if weights else 1.0


def distance_in(difference: float | None, size: float) -> float:
    """In units of such a size."""
    if difference is None:
        return math.inf
    return difference / size if size else (math.inf if difference else 0.0)


def _judged(one: Difference, yardstick: Difference | None) -> float | None:
    """Its difference, without what rounding has decided in the yardstick as well."""
    if one.difference is None or yardstick is None:
        return one.difference
    if one.undecided > ALIKE * yardstick.undecided + FEW:
        return one.difference
    return math.sqrt(max(0.0, one.difference**2 - one.unsettled**2))


def _is_finite(step: _Step) -> bool:
    return all(one.difference is not None for one in step.values())


def _total(parts: Iterator[float | None]) -> float:
    found = list(parts)
    if any(part is None for part in found):
        return math.inf
    return math.sqrt(sum(part * part for part in found if part is not None))


def _by_step(differences: Sequence[Difference], quantity: str) -> dict[int, _Step]:
    steps: dict[int, _Step] = defaultdict(dict)
    for one in differences:
        if one.quantity == quantity:
            steps[one.step][one.tensor] = one
    return dict(steps)
