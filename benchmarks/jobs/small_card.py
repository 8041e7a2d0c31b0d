"""A transformer whose batch does not fit the card, which is made small for it.

    python small_card.py [--gib 3] [--batch 8] [--context 1024] [--layers 12] [--steps 2000]

`--gib 0` leaves the card as it is: there the same training fits, for comparison.
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

WORDS = 8192


class Block(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(self.first(x)).chunk(3, dim=-1)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.second(x))


class Transformer(nn.Module):
    def __init__(self, layers: int, width: int, heads: int, context: int):
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.places = nn.Parameter(torch.zeros(context, width))
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, WORDS, bias=False)

    def forward(self, words):
        x = self.words(words) + self.places[: words.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gib", type=float, default=3.0)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if args.gib and device == "cuda":
        whole = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(args.gib * 2**30 / whole)
    model = Transformer(args.layers, args.width, args.heads, args.context).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    leaps = torch.randint(1, 20, (64, args.context + 1)).cumsum(1)
    text = ((torch.randint(WORDS, (64, 1)) + leaps) % WORDS).to(device)
    for step in range(args.steps):
        rows = torch.arange(step * args.batch, (step + 1) * args.batch) % len(text)
        batch = text[rows.to(device)]
        logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, WORDS), batch[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
