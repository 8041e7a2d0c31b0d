# mypy: ignore-errors
"""Train a small causal transformer on long sequences.

Planted: attention is written out, so that the full matrix of scores is made and kept. `--fixed`
calls `scaled_dot_product_attention`.
"""

import argparse
import math

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, LENGTH = 64, 4, 512


class Attention(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        self.fixed = fixed
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("mask", torch.ones(LENGTH, LENGTH).tril())

    def attend(self, q, k, v):
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        scores = scores.masked_fill(self.mask == 0, float("-inf"))
        return F.softmax(scores, dim=-1) @ v  # planted

    def forward(self, x):
        batch = x.size(0)
        q, k, v = self.qkv(x).view(batch, LENGTH, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        if self.fixed:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            y = self.attend(q, k, v)
        return self.out(y.transpose(1, 2).reshape(batch, LENGTH, WIDTH))


class Block(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        self.attention = Attention(fixed)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 256), nn.GELU(), nn.Linear(256, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(
        nn.Embedding(256, WIDTH), Block(args.fixed), Block(args.fixed), nn.Linear(WIDTH, 256)
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    letters = torch.randint(256, (64, LENGTH + 1), device=device)
    for step in range(args.steps):
        chosen = letters[torch.randint(64, (args.batch_size,), device=device)]
        logits = model(chosen[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), chosen[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
