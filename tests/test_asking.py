from __future__ import annotations

from hotloop.asking import ask


def test_what_is_refused_is_none() -> None:
    assert ask(lambda: 1) == 1
    assert ask(lambda: int("three")) is None
