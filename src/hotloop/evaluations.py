"""Evaluation and sampling, told from training by the events alone.

A pass without gradients that happens in most steps is part of the step (a target network, a
teacher, the generator while the critic learns); one that happens now and then is evaluation,
together with the batches that were loaded for it.

Of a model that no step calls (an average of the weights, what a wrapper holds inside) no pass is
seen. What tells of its evaluation is a loader that is read now and then, batch after batch, without
any training in between.

An evaluation that forgets to turn gradients off is passes that few steps have more than the others,
before their backward passes, of which they have as many as the others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from hotloop.measurement import Events, Kind

_TRAINING = frozenset(
    {Kind.FORWARD_BEGIN, Kind.BACKWARD_BEGIN, Kind.OPTIMIZER_BEGIN, Kind.ZERO_GRAD_BEGIN}
)
SEVERAL = 2
"""Batches in a row. One alone may be for the training step that follows."""
MOST = 2 / 3
"""Of the steps have to be alike for a pass that others have more to be told from the training."""


def windows(events: Events, edges: list[int], seldom: set[int]) -> list[tuple[int, int]]:
    """From the first event of each evaluation to its last. `edges`: where steps end.

    `seldom`: loaders whose batches few steps see.
    """
    found = [*_without_gradients(events, edges), *_with_gradients(events, edges, seldom)]
    return _joined([*found, *_of_loaders(events, seldom)] if seldom else found)


def _joined(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for first, last in sorted(found):
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return joined


def _of_loaders(events: Events, seldom: set[int]) -> Iterator[tuple[int, int]]:
    begin, last, batches = 0, 0, 0
    is_reading = in_hand = False
    for index, kind in enumerate(events.kind):
        of_others = kind == Kind.DATA_BEGIN and events.key[index] not in seldom
        if kind in _TRAINING or of_others:
            if batches >= SEVERAL:
                # Nothing was seen of what became of its last batch: that is what goes by until
                # the training draws one of its own.
                yield begin, index if in_hand and of_others else last
            is_reading, batches, in_hand = False, 0, False
        elif kind == Kind.DATA_BEGIN and not is_reading:
            is_reading, begin = True, index
        elif kind == Kind.DATA_END and is_reading:
            last, in_hand = index, events.n[index] >= 0
            batches += in_hand
        elif kind == Kind.NO_GRAD_END:
            in_hand = False
    if batches >= SEVERAL:
        yield begin, last


def _with_gradients(
    events: Events, edges: list[int], seldom: set[int]
) -> Iterator[tuple[int, int]]:
    passes, backward = _per_step(events, Kind.FORWARD_BEGIN, edges), None
    if len(set(passes)) > 1:  # else seen sooner
        backward = _per_step(events, Kind.BACKWARD_BEGIN, edges)
    counts = list(zip(passes, backward or passes, strict=True))
    usual, alike = Counter(counts).most_common(1)[0] if counts else ((0, 0), 0)
    if alike <= MOST * len(counts) or alike == len(counts):
        return
    for (begin, end), (forward, back) in zip(pairwise([0, *edges]), counts, strict=True):
        if back == usual[1] and forward > usual[0]:
            yield from _leading(events, begin, end, forward - usual[0], seldom)


def _per_step(events: Events, kind: Kind, edges: list[int]) -> list[int]:
    import numpy as np

    found = np.flatnonzero(np.frombuffer(bytes(bytearray(events.kind)), np.uint8) == int(kind))
    steps = np.searchsorted(edges, found, side="right")
    counts: list[int] = np.bincount(steps, minlength=len(edges))[: len(edges)].tolist()
    return counts


def _leading(
    events: Events, begin: int, end: int, passes: int, seldom: set[int]
) -> Iterator[tuple[int, int]]:
    """The first passes of a step, with what loaders that few steps read have loaded for them."""
    first, last, depth = -1, -1, 0
    for index in range(begin, end):
        kind = events.kind[index]
        if kind == Kind.BACKWARD_BEGIN:
            return
        if kind == Kind.FORWARD_BEGIN:
            first, depth, passes = index if first < 0 else first, depth + 1, passes - 1
        elif kind == Kind.FORWARD_END:
            last, depth = index, depth - 1
            if depth == 0 and passes <= 0:
                break
    if passes > 0 or depth:
        return
    while first > begin and _loads(events, first - 1, seldom):
        first -= 1
    while last + 1 < end and _loads(events, last + 1, seldom):
        last += 1
    yield first, last


def _loads(events: Events, index: int, seldom: set[int]) -> bool:
    is_load = events.kind[index] in (Kind.DATA_BEGIN, Kind.DATA_END)
    return is_load and events.key[index] in seldom


def _without_gradients(events: Events, edges: list[int]) -> list[tuple[int, int]]:
    if Kind.NO_GRAD_BEGIN not in events.kind:  # seen many times sooner
        return []
    found = list(_no_grad_windows(events))
    steps = {bisect_right(edges, first) for first, _ in found}
    with_pass = sum(step < len(edges) for step in steps)
    return [] if with_pass * 2 > len(edges) else found


def _no_grad_windows(events: Events) -> Iterator[tuple[int, int]]:
    begin: int | None = None
    batch: int | None = None
    empty: dict[int, int] = {}
    """Where each loader last handed out nothing: a pass over its data begins there, or has ended.

    The end of the training's own pass, which often stands before an evaluation, is no part of it.
    """
    for index, kind in enumerate(events.kind):
        if kind in _TRAINING:
            batch = None
            empty.clear()
        elif kind == Kind.DATA_BEGIN and events.n[index] < 0:
            empty[events.key[index]] = index
        elif kind == Kind.DATA_BEGIN and batch is None:
            batch = _made_ready(events, empty.get(events.key[index], index))
        elif kind == Kind.NO_GRAD_BEGIN and begin is None:
            begin = index if batch is None else batch
        elif kind == Kind.NO_GRAD_END and begin is not None:
            yield begin, index
            # Up to the next pass the loop of the evaluation itself is running.
            begin, batch = None, index


def _made_ready(events: Events, begun: int) -> int:
    """Since when an evaluation whose loader began its pass there has been under way: what goes by
    between the end of the pass before and that is its own, such as items that are drawn to be kept.
    """
    before = begun - 1
    has_ended = before >= 0 and events.kind[before] == Kind.DATA_END and events.n[before] < 0
    return before if has_ended else begun
