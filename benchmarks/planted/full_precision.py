# mypy: ignore-errors
"""Train a wide network.

Planted: its large matrix products are computed in FP32 proper, without the tensor cores. `--fixed`
lets them use TF32.
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
    torch.backends.cuda.matmul.allow_tf32 = args.fixed
    model = nn.Sequential(
        nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10)
    ).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    inputs = torch.randn(4, 8192, 4096, device="cuda")
    labels = torch.randint(10, (4, 8192), device="cuda")
    for step in range(args.steps):
        loss = nn.functional.cross_entropy(model(inputs[step % 4]), labels[step % 4])  # planted
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
