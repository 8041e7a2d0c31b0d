"""The phases of a step as named ranges, for whoever looks at a trace of it."""

from __future__ import annotations

import threading
from typing import Any

from hotloop.runtime.deep.ranges import Ranges
from hotloop.seams import Seam, Seams

PREFIX = "phase: "
FORWARD = "forward"


class PhaseRanges:
    """Forward lasts until the backward pass begins, as everywhere here: the loss is part of it."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._thread = threading.get_ident()
        self._ranges = Ranges(torch, with_nvtx=True)
        self._lasting = False
        """A forward range that was left open, because the loss comes after the model."""

    def attach(self, seams: Seams) -> None:
        phases = {
            "data": (seams.loader, seams.batch),
            "copy": (seams.move,),
            "backward": (seams.backward, seams.grad),
            "optimizer": (seams.clip, seams.scaler_step, seams.step, seams.zero_grad),
        }
        for name, through in phases.items():
            for seam in through:
                self._attach(seam, name)
        seams.model.before.append(lambda args, kwargs: self._begin(FORWARD))
        seams.model.after.append(self._called)

    def close(self) -> None:
        """A forward pass that nothing came after."""
        if self._lasting:
            self._lasting = False
            self._ranges.end()

    def _attach(self, seam: Seam, name: str) -> None:
        seam.before.append(lambda args, kwargs: self._begin(name))
        seam.after.append(lambda args, result, began: self._end())

    def _begin(self, name: str) -> None:
        if threading.get_ident() == self._thread:
            self.close()
            self._ranges.begin(PREFIX + name)

    def _end(self) -> None:
        if threading.get_ident() == self._thread:
            self.close()
            self._ranges.end()

    def _called(self, args: Any, result: Any, began: int) -> None:
        if threading.get_ident() != self._thread:
            return
        self.close()
        if result is not None and self._torch.is_grad_enabled():
            self._lasting = True
        else:
            self._ranges.end()
