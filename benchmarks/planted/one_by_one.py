# mypy: ignore-errors
"""Train a classifier on batches that are worked off in parts, as if memory were short.

Planted: a batch of 16 is accumulated sample by sample, although it would fit at once. `--fixed`
takes it at once.
"""

import argparse

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    micro_batch = args.batch_size if args.fixed else 1

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(
        nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    inputs = torch.randn(1024, 512, device=device)
    labels = torch.randint(10, (1024,), device=device)
    for step in range(args.steps):
        chosen = torch.randint(1024, (args.batch_size,), device=device)
        optimizer.zero_grad()
        for part in chosen.split(micro_batch):
            loss = nn.functional.cross_entropy(model(inputs[part]), labels[part])
            (loss * len(part) / args.batch_size).backward()  # planted
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
