"""GPT-2 124M and a tiny GPT, on tokens that are made from a seed."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from hotloop.workloads.common import Repeated, Workload
from hotloop.workloads.encoded import Encoded


class Attention(nn.Module):  # type: ignore[misc]
    """Causal. Written out, as in many a script, or by torch's fused function."""

    def __init__(self, width: int, heads: int, context: int, fused: bool) -> None:
        super().__init__()
        self.heads, self.fused = heads, fused
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        below = torch.tril(torch.ones(context, context)).view(1, 1, context, context)
        self.register_buffer("below", below, persistent=False)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(x).split(width, 2)
        )
        if self.fused:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
            scores = scores.masked_fill(self.below[:, :, :length, :length] == 0, float("-inf"))
            mixed = F.softmax(scores, dim=-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, heads: int, context: int, fused: bool) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, context, fused)
        wide, narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.mlp = nn.Sequential(wide, nn.GELU(approximate="tanh"), narrow)

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.first(x))
        return x + self.mlp(self.second(x))


class Gpt(nn.Module):  # type: ignore[misc]
    def __init__(
        self,
        layers: int,
        heads: int,
        width: int,
        context: int,
        vocabulary: int,
        fused: bool,
        recompute: bool,
    ) -> None:
        super().__init__()
        self.recompute = recompute
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(context, width)
        self.layers = nn.ModuleList(Layer(width, heads, context, fused) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        self.apply(self._begin)

    def forward(self, tokens: Any) -> Any:
        x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.recompute else layer(x)
        return self.head(self.norm(x))

    def _begin(self, module: Any) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)


def passage(length: int, text: Any) -> Any:
    """Out of a longer text, from anywhere in it."""
    start = int(torch.randint(len(text) - length + 1, ()))
    return (text[start : start + length].long(),)


class Gpt2(Workload):
    """124 million parameters; each sample is a sequence."""

    batch_size = 12
    context = 1024
    layers = 12
    heads = 12
    width = 768
    vocabulary = 50257
    pool = 256
    lr = 3e-4
    attention = "handwritten"
    """Or "fused"."""
    recompute = False
    """Layers are computed again in the backward pass, instead of being kept."""

    def model(self) -> Any:
        fused = self.attention == "fused"
        sizes = (self.layers, self.heads, self.width, self.context, self.vocabulary)
        return self.built(Gpt(*sizes, fused, self.recompute))

    def data(self) -> Any:
        """Counting on from a random number, now and then by leaps: there is something to learn."""
        length = (self.context + 1) * (2 if self.decode else 1)
        start = torch.randint(self.vocabulary, (self.pool, 1))
        jumps = torch.rand(self.pool, length) < 0.02
        steps = torch.where(jumps, torch.randint(self.vocabulary, jumps.shape), 1)
        tokens = (start + steps.cumsum(1)) % self.vocabulary
        samples = self.steps * self.batch_size
        if self.decode:
            return Encoded((tokens.int(),), samples, partial(passage, self.context + 1))
        return Repeated((tokens.to(self.place),), samples)

    def loss(self, model: Any, batch: Any) -> Any:
        (tokens,) = batch
        logits = model(tokens[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    def optimizer(self, parameters: Any) -> Any:
        return torch.optim.AdamW(parameters, lr=self.lr, betas=(0.9, 0.95), weight_decay=0.1)


class TinyGpt(Gpt2):
    batch_size = 8
    context = 128
    layers = 4
    heads = 4
    width = 128
    vocabulary = 512
