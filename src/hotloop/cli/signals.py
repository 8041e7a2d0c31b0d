"""Ctrl-C, SIGTERM and a closed terminal all end a trial the same way: cleanly, and at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hotloop.trial.order import Glimpse, Watcher

_ASKS_TO_STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def noted() -> Iterator[list[int]]:
    """Inside, such signals are only noted: they break into no clean-up and into no half-made file.

    What is ignored from the start, as SIGHUP is under nohup, stays ignored.
    """
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)

    heard = [number for number in _ASKS_TO_STOP if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, note) for number in heard}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def heed(received: list[int]) -> None:
    """To be called several times a second, where it is a good moment to stop."""
    if received:
        raise KeyboardInterrupt


def heeded(received: list[int], watcher: Watcher) -> Watcher:
    """`watcher`, which is asked several times a second."""

    def watch(glimpse: Glimpse) -> None:
        watcher(glimpse)
        heed(received)

    return watch
