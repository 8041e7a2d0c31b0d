"""Attention written by hand, recognised while its operators run.

Scores are a batched product, changed by whatever scales or masks them; a softmax makes weights of
them; another batched product spends the weights on the values. A result is known by the memory it
lies in, and every operator's result is told, so a place that is used again is never mistaken.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import FrameType
from typing import Any

PRODUCTS = {"bmm", "baddbmm"}
SOFTMAXES = {"_softmax", "_safe_softmax", "softmax"}
TORCHS_OWN = "multi_head_attention_forward"
"""The function that fuses its attention, unless it is asked for the weights."""
FRAMES = 12
"""Up to it, from the softmax that it calls, at most."""


@dataclass
class Chain:
    """One attention on its way through its operators."""

    queries: int
    keys: int
    elements: int
    seconds: float
    are_weights: bool = False
    line: int | None = None
    """Of the softmax: a number of the frames."""
    tells_weights: bool = False
    is_kept: bool = True
    """Until the backward pass."""


class AttentionFinder:
    def __init__(self) -> None:
        self.found: list[Chain] = []
        self._chains: dict[int, Chain] = {}

    def tell(
        self,
        name: str,
        inputs: list[Any],
        results: list[Any],
        seconds: float,
        line: int | None,
        frame: FrameType | None = None,
        is_kept: bool = True,
    ) -> None:
        """Of every operator of the forward pass, in order, and which frame has called it."""
        if not results:
            return
        chain = next((known for one in inputs if (known := self._of(one)) is not None), None)
        result = results[0]
        if name in PRODUCTS:
            if chain is not None and chain.are_weights:
                chain.seconds += seconds
                self.found.append(chain)
                chain = None
            else:
                queries, keys = result.shape[-2:]
                chain = Chain(queries, keys, result.numel(), seconds)
        elif chain is not None:
            chain = self._carried_on(chain, result, seconds)
            if chain is not None and name in SOFTMAXES:
                chain.are_weights, chain.line = True, line
                chain.tells_weights, chain.is_kept = _is_torchs_own(frame), is_kept
        for one in results:
            self._chains.pop(_place(one), None)
        if chain is not None:
            self._chains[_place(result)] = chain

    def _carried_on(self, chain: Chain, result: Any, seconds: float) -> Chain | None:
        """Scaling, masking, dropout and casts keep the size; what does not is something else."""
        if result.numel() != chain.elements:
            return None
        chain.seconds += seconds
        return chain

    def _of(self, tensor: Any) -> Chain | None:
        return self._chains.get(_place(tensor))


def _is_torchs_own(frame: FrameType | None) -> bool:
    for _ in range(FRAMES):
        if frame is None:
            return False
        if frame.f_code.co_name == TORCHS_OWN:
            return True
        frame = frame.f_back
    return False


def _place(tensor: Any) -> int:
    return int(tensor.untyped_storage().data_ptr())
