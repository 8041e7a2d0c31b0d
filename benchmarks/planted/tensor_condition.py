# mypy: ignore-errors
"""Train a deep network whose layers hold back where they would grow too much.

Planted: each layer asks in Python whether its output is too large, and waits for the GPU to know.
`--fixed` decides on the GPU.
"""

import argparse

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, on_device):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, width)
        self.on_device = on_device

    def forward(self, x):
        y = self.inner(self.norm(x))
        largest = y.detach().abs().amax()
        if self.on_device:
            y = torch.where(largest > 5, y * (5 / largest), y)
        elif largest > 5:  # planted
            y = y * (5 / largest)
        return x + torch.tanh(y)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("This job needs a CUDA device.")

    torch.manual_seed(0)
    model = nn.Sequential(*[Block(512, args.fixed) for _ in range(24)], nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    inputs = torch.randn(65_536, 512, device="cuda")
    labels = torch.randint(10, (65_536,), device="cuda")
    for step in range(args.steps):
        first = step % 8 * 8192
        x, y = inputs[first : first + 8192], labels[first : first + 8192]
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
