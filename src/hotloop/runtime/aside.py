"""What autograd keeps for the way back, laid aside in the host's memory until it is asked for.

So a job that runs out of its GPU's memory as it is runs all the same: slowly, and computing what it
would have computed. That is what plans are compared with which make it fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hotloop.levers.caching.host_memory import available

LEAST = 2**20
"""Bytes. What is smaller is not what fills a GPU."""
SPARED = 2 * 2**30
"""Bytes of the host's memory that are left to others."""
ASKED_EVERY = 2**30
"""Bytes laid aside, until it is asked again how much memory is left."""


class Aside:
    def __init__(
        self, torch: Any, device: str = "cuda", left: Callable[[], int | None] = available
    ) -> None:
        self._torch = torch
        self._device = device
        self._left = left
        self._unasked = ASKED_EVERY

    def attach(self) -> None:
        """For as long as the process lives. Hooks of the script's own come before these."""
        self._torch.autograd.graph.saved_tensors_hooks(self._lay, self._fetch).__enter__()

    def _lay(self, tensor: Any) -> Any:
        """Copies are queued behind what computes the tensor, and before whoever gets its place."""
        size = tensor.numel() * tensor.element_size()
        is_plain = tensor.layout is self._torch.strided and tensor.device.type == self._device
        if not is_plain or size < LEAST:
            return tensor
        self._ask_for(size)
        pinned = self._device != "cpu"
        laid = self._torch.empty_like(tensor, device="cpu", pin_memory=pinned)
        return tensor.device, laid.copy_(tensor, non_blocking=True)

    def _fetch(self, kept: Any) -> Any:
        if not isinstance(kept, tuple):
            return kept
        device, laid = kept
        return laid.to(device, non_blocking=True)

    def _ask_for(self, size: int) -> None:
        """A host without memory kills whom it likes."""
        self._unasked += size
        if self._unasked < ASKED_EVERY:
            return
        self._unasked = 0
        left = self._left()
        if left is not None and left < SPARED + size:
            raise MemoryError("there is no room in the host's memory for what autograd keeps")
