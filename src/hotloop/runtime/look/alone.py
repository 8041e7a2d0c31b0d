"""How long a step's own work takes while the loader's workers stand still.

They take cores from it, and threads that wait for each other lose more than their share: how much
cannot be computed, only tried. So for a few steps the workers are held from the moment a batch has
come until the optimizer has stepped. Whoever asks them for something lets them go first.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from time import perf_counter
from typing import Any

from hotloop.seams import Seams

LONGEST = 5.0
"""Seconds for which they are held at most: the script may wait for them in a way we do not see."""


class AloneProbe:
    """Each of its functions is told by the training thread, but for the timer's."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        """One entry a step."""
        self._on = False
        self._held: list[int] = []
        self._since = 0.0
        self._spent = 0.0
        self._whole = False
        """Whether they were held for all of the step so far."""
        self._timer: threading.Timer | None = None

    def attach(self, seams: Seams) -> None:
        seams.batch.before.append(lambda args, kwargs: self._release())
        seams.batch.after.append(lambda args, result, began: self._hold(args[0], result))
        seams.loader.before.append(lambda args, kwargs: self._release())

    def begin(self) -> None:
        self._on, self._whole, self._spent = True, False, 0.0

    def end(self) -> None:
        self._release()
        self._on = False

    def stepped(self) -> None:
        """After a step of the job; from here on another begins."""
        self._release()
        if self._whole and self._spent:
            self.seconds.append(self._spent)
        self._whole, self._spent = True, 0.0

    def _hold(self, iterator: Any, batch: Any) -> None:
        workers = [worker.pid for worker in getattr(iterator, "_workers", ())]
        if not self._on or batch is None or not workers:
            return
        self._held = [pid for pid in workers if pid and _told(pid, signal.SIGSTOP)]
        self._timer = threading.Timer(LONGEST, self._give_up)
        self._timer.daemon = True
        self._timer.start()
        self._since = perf_counter()

    def _release(self) -> None:
        if not self._held:
            return
        self._spent += perf_counter() - self._since
        if self._timer is not None:
            self._timer.cancel()
        held, self._held = self._held, []
        for pid in held:
            _told(pid, signal.SIGCONT)

    def _give_up(self) -> None:
        self._whole = False
        self._release()


def _told(pid: int, what: signal.Signals) -> bool:
    with contextlib.suppress(OSError):
        os.kill(pid, what)
        return True
    return False
