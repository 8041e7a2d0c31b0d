"""How long a step takes with no more threads than there are cores, where a job has more.

They wait for each other, and for their turn: how much that costs cannot be computed, only tried.
"""

from __future__ import annotations

from typing import Any

from hotloop.levers.threads import usable_cores
from hotloop.runtime.look.turns import Turns
from hotloop.tried import ThreadsTried


class FewerThreadsProbe:
    def __init__(self, torch: Any) -> None:
        # The function itself: what watches the script's own calls is not to hear of ours.
        self._set, self._get = torch._C.set_num_threads, torch.get_num_threads
        self._cores = usable_cores()
        self._own = 0
        self._turns = Turns(lambda fewer: self._set(self._cores if fewer else self._own))

    @property
    def is_worth_it(self) -> bool:
        return bool(self._get() > self._cores)

    @property
    def tried(self) -> ThreadsTried | None:
        seconds = self._turns.seconds
        return None if seconds is None else ThreadsTried(self._cores, *seconds)

    def begin(self) -> None:
        self._own = self._get()
        self._turns.begin()

    def stepped(self) -> None:
        self._turns.stepped()

    def end(self) -> None:
        self._turns.end()
