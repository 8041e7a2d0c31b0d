# mypy: ignore-errors
"""Train for a number of steps, rather than of passes over the data.

Planted: every batch is the first of an iterator that is made for it, with workers of its own.
`--fixed` makes one and draws from it until it ends.
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def endless(loader):
    while True:
        yield from loader


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    data = TensorDataset(torch.randn(4096, 64), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=args.batch_size, shuffle=True, num_workers=1)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    batches = endless(loader)
    for step in range(args.steps):
        if args.fixed:
            x, y = next(batches)
        else:
            x, y = next(iter(loader))  # planted
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
