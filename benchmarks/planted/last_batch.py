# mypy: ignore-errors
"""Train a classifier on a small data set, in epochs.

Planted: a batch does not quite hold the data set, so that every other step is taken for four
samples and costs nearly as much. `--fixed` drops the short batch; gains are counted by sample.
"""

import argparse
from itertools import islice

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def forever(loader):
    while True:
        yield from loader


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    samples = TensorDataset(torch.randn(132, 256), torch.randint(10, (132,)))
    loader = DataLoader(samples, args.batch_size, shuffle=True, drop_last=args.fixed)
    model = nn.Sequential(
        nn.Linear(256, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10)
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    criterion = nn.CrossEntropyLoss()
    for step, (x, y) in enumerate(islice(forever(loader), args.steps)):
        loss = criterion(model(x.to(device)), y.to(device))  # planted
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
