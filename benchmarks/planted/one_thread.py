# mypy: ignore-errors
"""Train a wide network on the processor.

Planted: torch is told to use one thread. `--fixed` leaves that to torch.
"""

import argparse

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    if not args.fixed:
        torch.set_num_threads(1)  # planted

    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(4096, 1024)
    labels = torch.randint(10, (4096,))
    for step in range(args.steps):
        first = step * args.batch_size % 4096
        x, y = inputs[first : first + args.batch_size], labels[first : first + args.batch_size]
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
