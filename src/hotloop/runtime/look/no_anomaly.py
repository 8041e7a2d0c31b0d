"""How long a step takes without autograd's anomaly detection, where a job has it on.

It notes a traceback for every operator and looks through every gradient for NaN. What that costs
depends on the operators, and on how deep the script calls them: it is tried. A script may turn it
on once, or around each pass, so it is looked for, and turned off, where passes begin.
"""

from __future__ import annotations

from typing import Any

from hotloop.runtime.look.turns import Turns
from hotloop.seams import Seams
from hotloop.tried import AnomalyTried


class NoAnomalyProbe:
    def __init__(self, torch: Any) -> None:
        # The function itself: what watches the script's own calls is not to hear of ours.
        self._set, self._is_on = torch._C.set_anomaly_enabled, torch.is_anomaly_enabled
        self._looks_for_nan = torch.is_anomaly_check_nan_enabled
        self._turns = Turns(self._switch)
        self._was_on = self._stays_on = self._is_off = self._for_nan = False

    def attach(self, seams: Seams) -> None:
        seams.model.before.append(lambda args, kwargs: self._pass_begins())
        seams.backward.before.append(lambda args, kwargs: self._pass_begins(is_backward=True))

    @property
    def is_worth_it(self) -> bool:
        return self._was_on

    @property
    def tried(self) -> AnomalyTried | None:
        if not self._was_on:
            return None
        return AnomalyTried(*(self._turns.seconds or (None, None)))

    def begin(self) -> None:
        self._stays_on, self._for_nan = self._is_on(), self._looks_for_nan()
        self._turns.begin()

    def stepped(self) -> None:
        self._turns.stepped()

    def end(self) -> None:
        self._turns.end()

    def _pass_begins(self, is_backward: bool = False) -> None:
        if self._is_off:
            self._set(False)
        elif is_backward and self._is_on():
            self._was_on = True

    def _switch(self, off: bool) -> None:
        self._is_off = off
        if self._stays_on:
            self._set(not off, self._for_nan)
