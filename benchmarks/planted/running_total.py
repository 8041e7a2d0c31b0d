# mypy: ignore-errors
"""Restore noisy pictures, and show the mean error since the beginning.

Planted: the error is added up as a tensor with its history, so that the restored pictures of every
step are kept for ever. `--fixed` adds up numbers.
"""

import argparse

import torch
from torch import nn

SIZE = 96


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(nn.Conv2d(3, 3, 1), nn.LeakyReLU(0.1), nn.Conv2d(3, 3, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    pictures = torch.rand(args.batch_size, 3, SIZE, SIZE, device=device)
    total_error = 0
    for step in range(1, args.steps + 1):
        restored = model(pictures)
        loss = nn.functional.mse_loss(restored, pictures)
        error = nn.functional.l1_loss(restored, pictures)
        total_error += error.item() if args.fixed else error  # planted
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} mean error {float(total_error) / step:.4f}", flush=True)


if __name__ == "__main__":
    main()
