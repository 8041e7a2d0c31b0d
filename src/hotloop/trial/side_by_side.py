"""Trials that run at the same time, as many as there is room for.

Only for those whose speed is not what is asked. A thread watches over each of them; whoever waits
for all of them does so in its own, where signals arrive.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hotloop.trial.order import Glimpse, Launcher, Order, Watcher
from hotloop.trial.trial import Trial

SIDE_BY_SIDE = "side by side"
"""What several of them are called, where one would have its purpose."""
EVERY_SECONDS = 0.1


@dataclass(frozen=True)
class Placed:
    order: Order
    share: float
    """Of the room that there is, which it takes."""


def launch_all(
    placed: Sequence[Placed],
    launcher: Launcher,
    watcher: Watcher,
    ended: Callable[[Trial], None],
    deadline: float = math.inf,
) -> None:
    """`ended` is told of each, in the caller's thread. What the watcher raises ends all of them
    before it is passed on. `deadline`: by the monotonic clock; what has not begun by then does not.
    """
    runs = _Runs(launcher, deadline)
    began = time.monotonic()
    waiting = list(enumerate(placed))
    try:
        while waiting or runs.going:
            if time.monotonic() >= deadline:
                waiting.clear()
            for number, one in list(waiting):
                if runs.have_room_for(one.share):
                    waiting.remove((number, one))
                    runs.start(number, one)
            if (trial := runs.wait()) is not None:
                ended(trial)
            watcher(Glimpse(time.monotonic() - began, runs.steps, None, b""))
    finally:
        runs.end()


class _Runs:
    def __init__(self, launcher: Launcher, deadline: float) -> None:
        self.going: dict[int, float] = {}
        self._launcher = launcher
        self._deadline = deadline
        self._made: dict[int, int] = {}
        self._stop = threading.Event()
        self._ended: queue.SimpleQueue[tuple[int, Trial | BaseException]] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    @property
    def steps(self) -> int:
        """Of all of them together."""
        return sum(self._made.values())

    def have_room_for(self, share: float) -> bool:
        """For one there always is."""
        return not self.going or sum(self.going.values()) + share <= 1

    def start(self, number: int, placed: Placed) -> None:
        left = self._deadline - time.monotonic()
        order = replace(placed.order, limit_seconds=min(placed.order.limit_seconds, left))
        thread = threading.Thread(target=self._run, args=(number, order), daemon=True)
        thread.start()
        self.going[number] = placed.share
        self._threads.append(thread)

    def wait(self) -> Trial | None:
        """A little, or until one has ended. Raises what its launcher raised."""
        try:
            number, outcome = self._ended.get(timeout=EVERY_SECONDS)
        except queue.Empty:
            return None
        del self.going[number]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int, order: Order) -> None:
        def watch(glimpse: Glimpse) -> None:
            self._made[number] = glimpse.steps
            if self._stop.is_set():
                raise KeyboardInterrupt  # by which a launcher ends what it has started

        try:
            self._ended.put((number, self._launcher.launch(order, watch)))
        except BaseException as error:  # for the one who waits
            self._ended.put((number, error))
