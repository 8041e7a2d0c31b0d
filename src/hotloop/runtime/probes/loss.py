"""Every loss that is differentiated, kept on its device and read after the run."""

from __future__ import annotations

import math
import sys
from typing import Any

from hotloop.measurement import Events, Kind, Losses
from hotloop.seams import Seams

MOST_LOSSES = 100_000
CUDA_GRAPHS = "torch._inductor.cudagraph_trees"


class LossProbe:
    def __init__(self, torch: Any) -> None:
        self._tensor = torch.Tensor
        self._kept: list[tuple[int, Any, int]] = []
        """When its backward pass began, the loss, and how often it had been changed in place."""
        self._scaled: Any = None
        self._unscaled: Any = None
        self._inside_backward = torch._C._current_graph_task_id

    def attach(self, seams: Seams) -> None:
        seams.scale.after.append(self._note_scaling)
        seams.backward.after.append(self._keep)

    def losses(self, events: Events) -> Losses:
        """Waits for the device: only when the measuring is over."""
        if not self._kept:
            return Losses()
        begun = {
            time: index
            for index, (time, kind) in enumerate(zip(events.time_ns, events.kind, strict=True))
            if kind == Kind.BACKWARD_BEGIN
        }
        kept = [
            (begun[began], loss)
            for began, loss, version in self._kept
            # What the script has used again since, to add up losses say, is no loss any more.
            if began in begun and (version < 0 or loss._version == version)
        ]
        numbers = [float(loss) for _, loss in kept]
        finite = [number if math.isfinite(number) else None for number in numbers]
        return Losses(
            event=[index for index, _ in kept],
            value=finite,
            not_finite=finite.count(None),
        )

    def _note_scaling(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        self._unscaled, self._scaled = args[1], result

    def _keep(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        if not args or self._inside_backward() != -1 or len(self._kept) >= MOST_LOSSES:
            return  # a checkpointed block runs a backward pass of its own inside the job's
        loss = args[0]
        if self._scaled is not None:
            if loss is self._scaled:
                loss = self._unscaled
            self._scaled = self._unscaled = None
        if type(loss) is tuple or type(loss) is list:
            loss = loss[0] if loss else None
        if isinstance(loss, self._tensor):
            if loss.numel() != 1:
                self._kept.append((began, loss.detach().float().mean(), -1))
            elif not loss.is_cuda:
                self._kept.append((began, loss.item(), -1))
            elif CUDA_GRAPHS in sys.modules:
                # A copy: the next replay of a graph overwrites the original, and nobody knows.
                self._kept.append((began, loss.detach().clone(), -1))
            else:
                self._kept.append((began, loss.detach(), loss._version))
