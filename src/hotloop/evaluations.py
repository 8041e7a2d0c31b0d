"""Evaluation and sampling, told from training by the events alone.

A pass without gradients that happens in most steps is part of the step (a target network, a
teacher, the generator while the critic learns); one that happens now and then is evaluation,
together with the batches that were loaded for it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from hotloop.measurement import Events, Kind

_TRAINING = frozenset(
    {Kind.FORWARD_BEGIN, Kind.BACKWARD_BEGIN, Kind.OPTIMIZER_BEGIN, Kind.ZERO_GRAD_BEGIN}
)


def windows(events: Events, edges: list[int]) -> list[tuple[int, int]]:
    """From the first event of each evaluation to its last. `edges`: where steps end."""
    if Kind.NO_GRAD_BEGIN not in events.kind:  # seen many times sooner
        return []
    found = list(_no_grad_windows(events))
    steps = {bisect_right(edges, first) for first, _ in found}
    with_pass = sum(step < len(edges) for step in steps)
    return [] if with_pass * 2 > len(edges) else found


def _no_grad_windows(events: Events) -> Iterator[tuple[int, int]]:
    begin: int | None = None
    batch: int | None = None
    for index, kind in enumerate(events.kind):
        if kind in _TRAINING:
            batch = None
        elif kind == Kind.DATA_BEGIN and batch is None:
            batch = index
        elif kind == Kind.NO_GRAD_BEGIN and begin is None:
            begin = index if batch is None else batch
        elif kind == Kind.NO_GRAD_END and begin is not None:
            yield begin, index
            # Up to the next pass the loop of the evaluation itself is running.
            begin, batch = None, index
