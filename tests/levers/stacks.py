"""Models of repeated blocks, as scripts write them. Imports torch: tests import this late."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self, number: int, width: int = 6) -> None:
        super().__init__()
        self.number = number
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        return x + torch.relu(self.inner(self.norm(x)))


class Numbered(Block):
    """Computes with a number of its own."""

    def forward(self, x: Any) -> Any:
        return super().forward(x) / (self.number + 2)


class Hidden(Block):
    @torch._dynamo.disable  # type: ignore[untyped-decorator]
    def forward(self, x: Any) -> Any:
        return super().forward(x)


class Stack(nn.Module):  # type: ignore[misc]
    def __init__(self, depth: int = 4, kind: type[Block] = Block) -> None:
        super().__init__()
        self.start = nn.Linear(4, 6)
        self.blocks = nn.ModuleList(kind(number) for number in range(depth))
        self.head = nn.Linear(6, 1)

    def forward(self, x: Any) -> Any:
        x = self.start(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class TwoStacks(Stack):
    def __init__(self) -> None:
        super().__init__(4)
        self.wide = nn.ModuleList(Block(number, 9) for number in range(3))
        self.between = nn.Linear(6, 9)
        self.head = nn.Linear(9, 1)

    def forward(self, x: Any) -> Any:
        x = self.start(x)
        for block in self.blocks:
            x = block(x)
        x = self.between(x)
        for block in self.wide:
            x = block(x)
        return self.head(x)


class Encoder(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
        self.start = nn.Linear(4, 4)
        self.body = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.head = nn.Linear(4, 1)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(self.start(x).unsqueeze(1)).squeeze(1))


def of_encoder_layers() -> Any:
    return Encoder()


def of_sequentials() -> Any:
    blocks = (nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(4))
    return nn.Sequential(nn.Linear(4, 6), *blocks, nn.Linear(6, 1))
