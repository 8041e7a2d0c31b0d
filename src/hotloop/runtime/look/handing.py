"""What it takes the training thread to receive a batch that a worker has made.

The batch lies in shared memory, which has to be found and mapped; that stays, however quickly
batches are made. It is the time that the thread spends on a core while it asks for one: while it
waits, it spends none.
"""

from __future__ import annotations

from time import thread_time
from typing import Any

from hotloop.seams import Seams

MOST = 500
"""Batches. More would tell nothing new."""


class HandingProbe:
    def __init__(self) -> None:
        self.seconds: list[float] = []
        """One entry a batch."""
        self._since: float | None = None

    def attach(self, seams: Seams) -> None:
        seams.batch.before.append(lambda args, kwargs: self._ask())
        seams.batch.after.append(lambda args, result, began: self._receive(args[0], result))

    def _ask(self) -> None:
        self._since = thread_time()

    def _receive(self, iterator: Any, batch: Any) -> None:
        began, self._since = self._since, None
        has_workers = bool(getattr(iterator, "_workers", ()))
        if began is not None and batch is not None and has_workers and len(self.seconds) < MOST:
            self.seconds.append(thread_time() - began)
