# mypy: ignore-errors
"""Train a network of many small operators.

Planted: autograd's search for the origin of a NaN was left on. `--fixed` leaves it off.
"""

import argparse

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear, self.norm = nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, x):
        gate = torch.sigmoid(self.norm(self.linear(x)))
        return x + 0.5 * gate * torch.tanh(x)


def prepare(find_nan):
    torch.manual_seed(0)
    torch.autograd.set_detect_anomaly(find_nan)  # planted


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    prepare(find_nan=not args.fixed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(*[Block(64) for _ in range(16)], nn.Linear(64, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, foreach=True)
    inputs = torch.randn(2048, 64, device=device)
    labels = torch.randint(10, (2048,), device=device)
    for step in range(args.steps):
        chosen = torch.randint(2048, (args.batch_size,), device=device)
        loss = nn.functional.cross_entropy(model(inputs[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
