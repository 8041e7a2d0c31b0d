# mypy: ignore-errors
"""Train a small network on the processor.

Planted: torch is told to use eight threads a core. `--fixed` leaves that to torch.
"""

import argparse
import os

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    if not args.fixed:
        torch.set_num_threads(8 * os.cpu_count())  # planted

    torch.manual_seed(0)
    layers = []
    for _ in range(8):
        layers += [nn.Linear(384, 384), nn.LayerNorm(384), nn.GELU()]
    model = nn.Sequential(*layers, nn.Linear(384, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(4096, 384)
    labels = torch.randint(10, (4096,))
    for step in range(args.steps):
        chosen = torch.randint(4096, (args.batch_size,))
        loss = nn.functional.cross_entropy(model(inputs[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
