# mypy: ignore-errors
"""Train a convolutional network on a machine with a GPU.

Planted: model and data were never moved to it. `--fixed` moves them.
"""

import argparse

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("This job needs a CUDA device.")

    torch.manual_seed(0)
    device = "cuda" if args.fixed else "cpu"
    model = nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(64, 128, 3, 2, 1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, 10),
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    pictures = torch.rand(512, 3, 64, 64, device=device)
    labels = torch.randint(10, (512,), device=device)
    for step in range(args.steps):
        chosen = torch.randint(512, (64,), device=device)
        loss = nn.functional.cross_entropy(model(pictures[chosen]), labels[chosen])  # planted
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
