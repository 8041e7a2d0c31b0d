# mypy: ignore-errors
"""Train a network with large activations, carefully.

Planted: the allocator's cache is emptied in every step, and all memory has to be asked for again.
`--fixed` leaves the cache alone.
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
        nn.Linear(2048, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10)
    ).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    inputs = torch.randn(4, 4096, 2048, device="cuda")
    labels = torch.randint(10, (4, 4096), device="cuda")
    torch.backends.cuda.matmul.allow_tf32 = True
    for step in range(args.steps):
        loss = nn.functional.cross_entropy(model(inputs[step % 4]), labels[step % 4])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not args.fixed:
            torch.cuda.empty_cache()  # planted
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
