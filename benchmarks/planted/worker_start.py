# mypy: ignore-errors
"""Fit a curve to few points, with workers that prepare them, in many short epochs.

Planted: an epoch has few batches and the workers are started anew for each. `--fixed` keeps them.
"""

import argparse
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __init__(self, count):
        self.points = torch.rand(count, 64)

    def __len__(self):
        return len(self.points)

    def __getitem__(self, index):
        point = self.points[index]
        return point, point.sin().sum()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = DataLoader(
        Points(2 * args.batch_size),
        args.batch_size,
        shuffle=True,
        num_workers=os.cpu_count(),
        persistent_workers=args.fixed,
    )
    model = nn.Sequential(
        nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    step = 0
    while step < args.steps:
        for points, values in loader:  # planted
            loss = nn.functional.mse_loss(model(points.to(device))[:, 0], values.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 50 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
