"""Which call is open after each event, and so what the time up to the next belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hotloop.measurement import Kind


@dataclass(frozen=True, eq=False)
class Open:
    """A call that has begun and not ended."""

    what: int
    """`kind // 2`."""
    key: int
    around: Open | None


def innermost(events: Iterable[tuple[int, int]]) -> Iterator[Open | None]:
    """After each event, given by its kind and key. None: no call is open.

    Loops do the same again and again, so what an event leads to is worked out once.
    """
    here: Open | None = None
    known: dict[tuple[Open | None, int, int], Open | None] = {}
    for kind, key in events:
        event = here, kind, key
        if event not in known:
            known[event] = _after(here, kind, key)
        here = known[event]
        yield here


def _after(here: Open | None, kind: int, key: int) -> Open | None:
    """An optimizer's step that raised has no end. It is over when a call around it ends, or when
    the same optimizer steps again, which none does inside its own step.
    """
    what = kind // 2
    if kind % 2:
        ended = _nearest(here, what)
        return ended.around if ended else here
    raised = _nearest(here, what, key) if kind == Kind.OPTIMIZER_BEGIN else None
    return Open(what, key, raised.around if raised else here)


def _nearest(here: Open | None, what: int, key: int | None = None) -> Open | None:
    """Itself or around it. `key`: any, unless told."""
    while here and not (here.what == what and key in (None, here.key)):
        here = here.around
    return here
