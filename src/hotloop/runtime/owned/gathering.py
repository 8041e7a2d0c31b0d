"""The gradients of one batch, gathered over its parts so that they are those of the whole batch.

A mean loss: each part counts by its share of the samples, which is known beforehand. A loss that is
summed up and weighted: the weight of the whole batch is known only at the end, so gradients are
gathered divided by the number of samples, which keeps their size, and put right once at the end.
"""

from __future__ import annotations

from typing import Any


class Gathering:
    def __init__(self, torch: Any, rows: int) -> None:
        """`rows`: samples in the whole batch."""
        self._torch = torch
        self._rows = rows
        self._weight: Any = None

    def differentiate(self, loss: Any, weight: Any, rows: int, scaler: Any = None) -> Any:
        """The part's own mean loss, differentiated. Weighting the gradient, not the loss, leaves
        the loss as it is for whoever looks at it."""
        whole = rows == self._rows
        if weight is None:
            mean, share = loss, rows / self._rows
        else:
            divisor = _or_one(self._torch, weight)
            mean, share = loss / divisor, divisor / self._rows
            if not whole:
                self._weight = weight if self._weight is None else self._weight + weight
        scaled = mean if scaler is None else scaler.scale(mean)
        scaled.backward(None if whole else self._gradient(scaled, share))
        return mean

    def finish(self, parameters: list[Any]) -> None:
        if self._weight is None:
            return
        factor = self._rows / _or_one(self._torch, self._weight)
        gradients = [p.grad for p in parameters if p.grad is not None]
        if isinstance(factor, self._torch.Tensor):
            factor = factor.to(gradients[0].device)
        self._torch._foreach_mul_(gradients, factor)

    def _gradient(self, loss: Any, share: Any) -> Any:
        if isinstance(share, self._torch.Tensor):
            return share.to(loss.device, loss.dtype).reshape(loss.shape)
        return self._torch.full_like(loss, share)


def _or_one(torch: Any, weight: Any) -> Any:
    """A part without weight, of padding alone, has no loss either; dividing by 0 would spoil it."""
    if isinstance(weight, torch.Tensor):
        number = weight.detach().float()
        return torch.where(number == 0, torch.ones_like(number), number)
    return float(weight) or 1.0
