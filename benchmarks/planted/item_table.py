# mypy: ignore-errors
"""Learn ratings of items, each with a row of a large table.

Planted: the table's gradient is dense, though a batch looks up few rows. `--fixed` asks for sparse
gradients, with which plain SGD does the same.
"""

import argparse

import torch
from torch import nn


class Ratings(nn.Module):
    def __init__(self, items, width, sparse):
        super().__init__()
        self.table = nn.Embedding(items, width, sparse=sparse)
        self.top = nn.Sequential(nn.Linear(8 * width, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, baskets):
        return self.top(self.table(baskets).flatten(1)).squeeze(1)  # planted


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    items = 100_000
    model = Ratings(items, 32, sparse=args.fixed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    baskets, ratings = torch.randint(items, (8192, 8)), torch.rand(8192)
    for step in range(args.steps):
        chosen = torch.randint(len(baskets), (args.batch_size,))
        loss = nn.functional.mse_loss(model(baskets[chosen]), ratings[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
