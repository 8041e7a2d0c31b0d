from __future__ import annotations

import random

import pytest

from hotloop.measurement import Kind
from hotloop.nesting import Open, innermost


def shown(call: Open | None) -> list[tuple[int, int]]:
    """From the outermost on."""
    return [*shown(call.around), (call.what, call.key)] if call else []


def by_hand(events: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """The rule itself, with a list."""
    calls: list[tuple[int, int]] = []
    found = []
    for kind, key in events:
        call = kind // 2, key
        if kind % 2:
            begun = [place for place, (what, _) in enumerate(calls) if what == kind // 2]
            calls = calls[: begun[-1]] if begun else calls
        elif kind == Kind.OPTIMIZER_BEGIN and call in calls:
            calls = [*calls[: calls.index(call)], call]
        else:
            calls = [*calls, call]
        found.append(calls)
    return found


@pytest.mark.parametrize("seed", range(30))
def test_any_order_of_events(seed: int) -> None:
    draw = random.Random(seed)
    events = [(draw.choice(list(Kind)).value, draw.randrange(2)) for _ in range(60)]
    assert [shown(call) for call in innermost(events)] == by_hand(events)


def test_what_repeats_is_worked_out_once() -> None:
    loop = [(kind.value, 0) for kind in (Kind.DATA_BEGIN, Kind.DATA_END, Kind.OPTIMIZER_BEGIN)]
    seen = {id(call): call for call in innermost([*loop, (Kind.OPTIMIZER_END.value, 0)] * 1000)}
    assert len(seen) == 3  # with none at all


def test_calls_that_never_end() -> None:
    """A forward pass that raises, again and again: as deep as there are events, and no deeper."""
    *_, last = innermost([(Kind.FORWARD_BEGIN.value, 0)] * 200_000)
    depth = 0
    while last:
        depth, last = depth + 1, last.around
    assert depth == 200_000
