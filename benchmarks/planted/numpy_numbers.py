# mypy: ignore-errors
"""Train a network on data that numpy has made.

Planted: the data are numpy's doubles, and so the model was made to fit them. `--fixed` makes the
data single precision instead.
"""

import argparse

import numpy as np
import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    random = np.random.default_rng(0)
    inputs = random.normal(size=(2048, 512))
    labels = random.integers(10, size=2048)
    model = nn.Sequential(
        nn.Linear(512, 768), nn.ReLU(), nn.Linear(768, 768), nn.ReLU(), nn.Linear(768, 10)
    )
    if args.fixed:
        inputs = inputs.astype(np.float32)
    else:
        model = model.double()  # planted
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, fused=True)
    for step in range(args.steps):
        first = step * args.batch_size % len(inputs)
        x = torch.from_numpy(inputs[first : first + args.batch_size])
        y = torch.from_numpy(labels[first : first + args.batch_size])
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
