"""What a launcher works out by itself; the rest is seen end to end."""

from __future__ import annotations

from hotloop.trial import launch


def test_kills_for_want_of_memory_are_counted() -> None:
    assert launch._kernel_memory_kills() >= 0
