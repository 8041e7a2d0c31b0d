# mypy: ignore-errors
"""Train a small GPT on random words, in the sizes that are asked for."""

import argparse
import math

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=100_000)
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--context", type=int, default=64)
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--heads", type=int, default=4)
parser.add_argument("--layers", type=int, default=2)
parser.add_argument("--words", type=int, default=512)
parser.add_argument("--fused", action="store_true", help="attention by torch's own function")
parser.add_argument("--lengths", action="store_true", help="every batch is of another length")
parser.add_argument("--own-loss", action="store_true", help="computed, and returned, by the model")
args = parser.parse_args()

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.three = nn.Linear(args.width, 3 * args.width)
        self.out = nn.Linear(args.width, args.width)
        ahead = torch.ones(args.context, args.context).tril().view(1, 1, args.context, args.context)
        self.register_buffer("mask", ahead)

    def forward(self, x):
        rows, length, _ = x.shape
        q, k, v = self.three(x).view(rows, length, 3, args.heads, -1).permute(2, 0, 3, 1, 4)
        if args.fused:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(mixed.transpose(1, 2).reshape(rows, length, -1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf"))
        mixed = scores.softmax(dim=-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(rows, length, -1))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        wide = args.width
        self.before, self.attention = nn.LayerNorm(wide), Attention()
        self.between = nn.LayerNorm(wide)
        self.thought = nn.Sequential(
            nn.Linear(wide, 4 * wide), nn.GELU(), nn.Linear(4 * wide, wide)
        )

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.thought(self.between(x))


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.word = nn.Embedding(args.words, args.width)
        self.place = nn.Embedding(args.context, args.width)
        self.blocks = nn.ModuleList(Block() for _ in range(args.layers))
        self.head = nn.Linear(args.width, args.words, bias=False)

    def forward(self, words, wanted=None):
        x = self.word(words) + self.place(torch.arange(words.shape[1], device=words.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(x)
        return logits if wanted is None else (logits, loss_of(logits, wanted))


def loss_of(logits, wanted):
    return F.cross_entropy(logits.flatten(0, 1), wanted.flatten())


model = Language().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
for step in range(1, args.steps + 1):
    # By strides of a prime, every length of the upper half comes once before one comes again.
    length = args.context - (step * 10007 % ((args.context + 1) // 2) if args.lengths else 0)
    words = torch.randint(args.words, (args.batch, length + 1), device=device)
    given, wanted = words[:, :-1][:, : args.context], words[:, 1:]
    if args.own_loss:
        _, loss = model(given, wanted)
    else:
        loss = loss_of(model(given), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step} loss {loss.item():.4f}", flush=True)
