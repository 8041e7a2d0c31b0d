"""Do two soaked runs deliver the same in their second pass over the data?

A loader whose first pass differs says nothing here: that is examined elsewhere, and a plan may take
batches of another size.
"""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.evidence import SoakSeen


@dataclass(frozen=True)
class SecondPass:
    compared: int = 0
    """Batches."""
    differs: str = ""
    """The first that is not the same, named."""

    @property
    def is_same(self) -> bool:
        return bool(self.compared) and not self.differs


def second_pass(one: SoakSeen, other: SoakSeen) -> SecondPass:
    """As far as both have come."""
    then, now = _passes(one), _passes(other)
    compared = 0
    for loader in sorted({loader for loader, _ in then}):
        if any(was != is_now for was, is_now in _pairs(then, now, loader, 1)):
            continue
        for place, (was, is_now) in enumerate(_pairs(then, now, loader, 2), start=1):
            if was != is_now:
                return SecondPass(compared, f"batch {place} of loader {loader} in a second epoch")
            compared += 1
    return SecondPass(compared)


_Passes = dict[tuple[int, int], list[str]]


def _pairs(then: _Passes, now: _Passes, loader: int, number: int) -> list[tuple[str, str]]:
    place = loader, number
    return list(zip(then.get(place, []), now.get(place, []), strict=False))


def _passes(seen: SoakSeen) -> _Passes:
    passes: _Passes = {}
    for batch in seen.delivered or ():
        passes.setdefault((batch.loader, batch.number), []).append(batch.checksum)
    return passes
