# mypy: ignore-errors
"""Train on rows that are looked up in a large index.

Planted: a callback collects garbage in every tenth step, and goes through all objects there are.
`--fixed` leaves that to Python.
"""

import argparse
import gc

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class FreeMemory:
    def __init__(self, every):
        self.every = every

    def after_step(self, step):
        if self.every and step % self.every == 0:
            gc.collect()  # planted


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    index = {f"row {number}": [number, {"label": number % 10}] for number in range(10_000)}
    labels = torch.tensor([row[1]["label"] for row in index.values()])
    data = TensorDataset(torch.randn(len(index), 64), labels)
    loader = DataLoader(data, batch_size=args.batch_size, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    callbacks = [FreeMemory(0 if args.fixed else 10)]
    step = 0
    while step < args.steps:
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            for callback in callbacks:
                callback.after_step(step)
            if step % 50 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
            if step == args.steps:
                break


if __name__ == "__main__":
    main()
