# mypy: ignore-errors
"""Train a deep network, two samples a step.

Planted: a step costs about as much for two samples as it would for many more. `--fixed` takes 64;
gains are counted by sample.
"""

import argparse

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.tanh(self.inner(self.norm(x)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    batch_size = 64 if args.fixed else 2

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(*[Block(256) for _ in range(48)], nn.Linear(256, 10)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    inputs = torch.randn(4096, 256, device=device)
    labels = torch.randint(10, (4096,), device=device)
    for step in range(args.steps):
        chosen = torch.randint(4096, (batch_size,), device=device)
        loss = nn.functional.cross_entropy(model(inputs[chosen]), labels[chosen])  # planted
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
