"""Deep models of repeated blocks. Imports torch: tests import this late."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

DEPTH, BATCH = 6, 8


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, norm: str = "LayerNorm", dropout: float = 0.2) -> None:
        super().__init__()
        self.norm = getattr(nn, norm)(width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Any, mask: Any = None, debug: float = 1.0) -> Any:
        """`debug`: a name that a checkpoint, too, would listen to."""
        x = x + debug * self.drop(self.narrow(nn.functional.gelu(self.wide(self.norm(x)))))
        return x if mask is None else x * mask


class Heir(Block):
    """Has the forward of the class above."""


class Counting(Block):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.calls = 0

    def forward(self, *args: Any, **options: Any) -> Any:
        self.calls += 1
        return super().forward(*args, **options)


class Averaging(Block):
    def __init__(self, width: int, *args: Any, **options: Any) -> None:
        super().__init__(width, *args, **options)
        self.register_buffer("mean", torch.zeros(width))

    def forward(self, x: Any, *args: Any, **options: Any) -> Any:
        with torch.no_grad():
            self.mean.lerp_(x.mean(0), 0.1)
        return super().forward(x - self.mean, *args, **options)


KINDS = (Block, Heir, Counting, Averaging)
_FORWARDS = {kind: vars(kind).get("forward") for kind in KINDS}


def put_back() -> None:
    for kind, forward in _FORWARDS.items():
        if forward is not None:
            setattr(kind, "forward", forward)  # noqa: B010
        elif "forward" in vars(kind):
            del kind.forward


class Stack(nn.Module):  # type: ignore[misc]
    def __init__(
        self, norm: str = "LayerNorm", kind: Any = Block, dropout: float = 0.2, own: Any = None
    ) -> None:
        super().__init__()
        self.h = nn.ModuleList(kind(16, norm, dropout) for _ in range(DEPTH))
        self.o = nn.Linear(16, 3)
        self.own = own
        """A checkpoint of its own."""

    def forward(self, x: Any) -> Any:
        mask = torch.ones_like(x)
        for block in self.h:
            if self.own is not None:
                x = self.own(block, x, mask, use_reentrant=False)
            else:
                x = block(x, mask=mask, debug=0.5)
        return self.o(x)


def loss_of(model: Any, shape: tuple[int, ...] = (BATCH, 16), device: str = "cpu") -> Any:
    return model(torch.randn(*shape, device=device)).square().mean()


def train(
    norm: str = "LayerNorm",
    model: Any = None,
    steps: int = 8,
    dropout: float = 0.2,
    shape: tuple[int, ...] = (BATCH, 16),
    device: str = "cpu",
) -> tuple[list[float], Any]:
    torch.manual_seed(0)
    model = model if model is not None else Stack(norm, dropout=dropout)
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, shape, device)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model


def same(one: Any, other: Any) -> bool:
    """To the bit, statistics that are kept running included."""
    states = one.state_dict(), other.state_dict()
    return states[0].keys() == states[1].keys() and all(
        torch.equal(value, states[1][name]) for name, value in states[0].items()
    )


def nodes(loss: Any) -> Iterator[Any]:
    """Of the autograd graph."""
    pending, met = [loss.grad_fn], set()
    while pending:
        node = pending.pop()
        if node is not None and node not in met:
            met.add(node)
            pending += [function for function, _ in node.next_functions]
            yield node
