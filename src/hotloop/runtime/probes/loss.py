"""Every loss that is differentiated, kept on its device and read after the run."""

from __future__ import annotations

import math
from typing import Any

from hotloop.measurement import Events, Kind, Losses
from hotloop.seams import Seams

MOST_LOSSES = 100_000


class LossProbe:
    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._kept: list[tuple[int, Any]] = []
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
        kept = [(begun[began], loss) for began, loss in self._kept if began in begun]
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
        if isinstance(loss, list | tuple) and loss:
            loss = loss[0]
        if isinstance(loss, self._torch.Tensor):
            self._kept.append((began, self._copy(loss)))

    def _copy(self, loss: Any) -> Any:
        """A clone: under CUDA graphs the next step overwrites the original."""
        if loss.numel() != 1:
            return loss.detach().float().mean()
        return loss.detach().clone() if loss.is_cuda else loss.item()
