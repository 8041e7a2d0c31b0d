"""What autograd keeps for the way back, laid aside in the host's memory until it is asked for.

So a job that runs out of its GPU's memory as it is runs all the same: slowly, and computing what it
would have computed. That is what plans are compared with which make it fit.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from hotloop.levers.caching.host_memory import available

LEAST = 2**20
"""Bytes. What is smaller is not what fills a GPU."""
SPARED = 4 * 2**30
"""Bytes of the host's memory that are left to others."""
ASKED_EVERY = 2**28
"""Bytes by which more is laid aside than ever before, until it is asked how much memory is left."""


class Aside:
    def __init__(
        self, torch: Any, device: str = "cuda", left: Callable[[], int | None] = available
    ) -> None:
        self._torch = torch
        self._device = device
        self._left = left
        self._laid = self._granted = 0
        """Bytes that lie there, and for how many there was room: torch keeps what it once had."""

    def attach(self) -> None:
        """For as long as the process lives. Hooks of the script's own come before these."""
        self._torch.autograd.graph.saved_tensors_hooks(self._lay, self._fetch).__enter__()

    def _lay(self, tensor: Any) -> Any:
        """Weights lie on the GPU anyway, and whoever saved them may want the very same.

        Of what else stays, another name is kept: a node that held its own result by the name it
        gave it would never be freed.
        """
        if tensor.is_leaf and tensor.requires_grad:
            return tensor
        is_ours = tensor.layout is self._torch.strided and tensor.device.type == self._device
        if not is_ours or _is_weight(tensor._base):
            return tensor.detach()
        once = tensor[tuple(slice(0, 1) if step == 0 else slice(None) for step in tensor.stride())]
        size = once.numel() * once.element_size()
        return self._copied(once, tensor, size) if size >= LEAST else tensor.detach()

    def _copied(self, once: Any, tensor: Any, size: int) -> Any:
        """`once`: without what is repeated in it. The copy is queued behind what computes it."""
        taken = 1 << (size - 1).bit_length()  # as torch hands out pinned memory
        self._ask_for(taken)
        on_gpu = self._device != "cpu"
        laid = self._torch.empty_like(once, device="cpu", pin_memory=on_gpu)
        self._laid += taken
        weakref.finalize(laid, self._give_back, taken).atexit = False
        laid.copy_(once, non_blocking=True)
        if on_gpu:  # where another stream computed it, its place is not free before
            tensor.record_stream(self._torch.cuda.current_stream(tensor.device))
        return tensor.device, laid, tensor.shape

    def _fetch(self, kept: Any) -> Any:
        if not isinstance(kept, tuple):
            return kept
        device, laid, shape = kept
        return laid.to(device, non_blocking=True).expand(shape)

    def _ask_for(self, taken: int) -> None:
        """A host without memory kills whom it likes."""
        if self._laid + taken <= self._granted:
            return
        left = self._left()
        if left is not None and left < SPARED + taken:
            raise MemoryError("there is no room in the host's memory for what autograd keeps")
        self._granted = self._laid + taken + ASKED_EVERY

    def _give_back(self, taken: int) -> None:
        self._laid -= taken


def _is_weight(base: Any) -> bool:
    return base is not None and base.is_leaf and base.requires_grad
