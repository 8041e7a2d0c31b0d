# mypy: ignore-errors
"""Train a light network on heavy batches that lie in the host's memory.

Planted: they are copied from pageable memory, and the GPU waits. `--fixed` pins them and copies
the next batch while this one is computed.
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
    model = nn.Sequential(
        nn.Conv2d(3, 16, 7, 4, 3),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, 2, 1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(512, 10),
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    pictures = [torch.rand(128, 3, 224, 224) for _ in range(8)]
    labels = [torch.randint(10, (128,)) for _ in range(8)]
    if args.fixed:
        pictures = [batch.pin_memory() for batch in pictures]
        labels = [batch.pin_memory() for batch in labels]
    for step in range(args.steps):
        x = pictures[step % 8].to("cuda", non_blocking=args.fixed)  # planted
        y = labels[step % 8].to("cuda", non_blocking=args.fixed)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
