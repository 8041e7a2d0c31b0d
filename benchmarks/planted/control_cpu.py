# mypy: ignore-errors
"""Train a wide network on the processor, as it should be done.

Nothing is planted: nearly all of the time goes to large matrix products, in double precision, as
physics asks for: some processors multiply fewer bits faster. `--fixed` changes nothing.
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

    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    model = nn.Sequential(
        nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    inputs = torch.randn(4 * args.batch_size, 1024)
    labels = torch.randint(10, (4 * args.batch_size,))
    for step in range(args.steps):
        first = step % 4 * args.batch_size
        x, y = inputs[first : first + args.batch_size], labels[first : first + args.batch_size]
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
