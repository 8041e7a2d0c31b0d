"""Named ranges in what a profiler records: torch's, and NVTX's for Nsight where there is CUDA."""

from __future__ import annotations

from typing import Any


class Ranges:
    """Ranges of one thread, each inside the one before."""

    def __init__(self, torch: Any, with_nvtx: bool = False) -> None:
        self._record = torch.profiler.record_function
        self._cuda = torch.cuda
        self._with_nvtx = with_nvtx
        self._open: list[tuple[str, Any, bool]] = []

    @property
    def innermost(self) -> str:
        return self._open[-1][0] if self._open else ""

    def begin(self, name: str) -> None:
        to_nsight = self._with_nvtx and self._cuda.is_initialized() and self._push(name)
        recorded = self._record(name)
        recorded.__enter__()
        self._open.append((name, recorded, to_nsight))

    def _push(self, name: str) -> bool:
        try:
            self._cuda.nvtx.range_push(name)
        except RuntimeError:  # a build of torch without NVTX
            self._with_nvtx = False
        return self._with_nvtx

    def end(self) -> None:
        if self._open:
            _, recorded, to_nsight = self._open.pop()
            recorded.__exit__(None, None, None)
            if to_nsight:
                self._cuda.nvtx.range_pop()
