"""Cross-entropy over a few rows at a time, so that no wide copy of all logits is ever made.

torch makes one of the logarithms of all probabilities, keeps it until the backward pass, and makes
two more there. Here the logits themselves are kept, and their gradient is written chunk by chunk in
their own number format.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

TWICE = (
    "hotloop: a loss that is computed in chunks cannot be differentiated twice. "
    "Take chunked_loss out of the plan."
)


@dataclass(frozen=True)
class Terms:
    """Of one loss: what is given to torch's own function, and how it is cut."""

    ignore_index: int
    reduction: str
    smoothing: float
    """Of labels: the part of each that is spread over all classes."""
    chunk: int
    """Logits computed at a time."""
    computed_in: Any
    """The number format of what is computed; that of the result is `dtype`."""
    dtype: Any


def cross_entropy(torch: Any) -> Any:
    """The function (logits, target, weight, terms) -> loss, for autograd.

    Logits are (rows, classes) or (rows, classes, positions), and the target is the same without
    classes; the weight is that of each class, or None.
    """

    class ChunkedCrossEntropy(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, logits: Any, target: Any, weight: Any, terms: Terms) -> Any:
            losses = _losses(torch, logits, target, weight, terms)
            total = _total(torch, target, weight, terms) if terms.reduction == "mean" else None
            ctx.save_for_backward(logits, target, weight, total)
            ctx.terms = terms
            if terms.reduction == "none":
                return losses.to(terms.dtype)
            return (losses.sum() if total is None else losses.sum() / total).to(terms.dtype)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            if torch.is_grad_enabled():
                raise RuntimeError(TWICE)
            logits, target, weight, total = ctx.saved_tensors
            scale = gradient.to(ctx.terms.computed_in)
            scale = (scale if total is None else scale / total).expand(target.shape)
            return _gradient(torch, logits, target, weight, scale, ctx.terms), None, None, None

    return ChunkedCrossEntropy.apply


def pieces(shape: Sequence[int], chunk: int) -> Iterator[tuple[slice, ...]]:
    """Of the target: at most `chunk` logits each, whole rows as far as possible, one at least."""
    rows, classes, *rest = shape
    positions = rest[0] if rest else 1
    if not rest or classes * positions <= chunk:
        step = max(1, chunk // (classes * positions))
        for row in range(0, rows, step):
            yield (slice(row, row + step),)
        return
    step = max(1, chunk // classes)
    for row in range(rows):
        for position in range(0, positions, step):
            yield slice(row, row + 1), slice(position, position + step)


def _of_logits(piece: tuple[slice, ...]) -> tuple[slice, ...]:
    """With all classes, which come second."""
    return (piece[0], slice(None), *piece[1:])


def _losses(torch: Any, logits: Any, target: Any, weight: Any, terms: Terms) -> Any:
    losses = torch.empty(target.shape, dtype=terms.computed_in, device=logits.device)
    for piece in pieces(logits.shape, terms.chunk):
        logs = torch.log_softmax(logits[_of_logits(piece)], 1, dtype=terms.computed_in)
        found, counts = _known(torch, target[piece], terms)
        own = -logs.gather(1, found.unsqueeze(1)).squeeze(1)
        if weight is not None:
            own *= weight[found]
        if terms.smoothing:
            spread = -(logs if weight is None else logs * _by_class(weight, logs)).sum(1)
            share = terms.smoothing / logits.shape[1]
            own = (1 - terms.smoothing) * own + share * spread
        losses[piece] = own.masked_fill_(~counts, 0.0)
    return losses


def _gradient(torch: Any, logits: Any, target: Any, weight: Any, scale: Any, terms: Terms) -> Any:
    """Probabilities less what they should be, each row scaled by how much its loss counts."""
    gradient = torch.empty_like(logits)
    share = terms.smoothing / logits.shape[1]
    every = 1.0 * logits.shape[1] if weight is None else weight.sum()
    for piece in pieces(logits.shape, terms.chunk):
        found, counts = _known(torch, target[piece], terms)
        how_much = scale[piece] * counts
        own = (1 - terms.smoothing) * (1.0 if weight is None else weight[found]) * how_much
        part = torch.softmax(logits[_of_logits(piece)], 1, dtype=terms.computed_in)
        part *= (own + share * every * how_much).unsqueeze(1)
        if terms.smoothing:
            spread = share * how_much.unsqueeze(1)
            part -= spread if weight is None else spread * _by_class(weight, part)
        part.scatter_add_(1, found.unsqueeze(1), -own.unsqueeze(1))
        gradient[_of_logits(piece)] = part
    return gradient


def _total(torch: Any, target: Any, weight: Any, terms: Terms) -> Any:
    """What the sum is divided by: how many targets count, each by its class's weight."""
    found, counts = _known(torch, target, terms)
    each = counts if weight is None else weight[found] * counts
    return each.sum(dtype=terms.computed_in)


def _by_class(weight: Any, like: Any) -> Any:
    return weight.view(-1, *(1 for _ in like.shape[2:]))


def _known(torch: Any, target: Any, terms: Terms) -> tuple[Any, Any]:
    """Targets that may be looked up, and which of them count."""
    counts = target != terms.ignore_index
    return torch.where(counts, target, 0), counts
