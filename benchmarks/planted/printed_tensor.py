# mypy: ignore-errors
"""Train a deep network and report the activity of each layer.

Planted: tensors are printed in every layer of every step, each time waiting for the GPU. `--fixed`
prints nothing there.
"""

import argparse

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, number, watched):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, width)
        self.number, self.watched = number, watched

    def forward(self, x):
        y = torch.tanh(self.inner(self.norm(x)))
        if self.watched:
            print("layer", self.number, y.detach().abs().mean())  # planted
        return x + y


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("This job needs a CUDA device.")

    torch.manual_seed(0)
    watched = not args.fixed
    blocks = [Block(512, number, watched) for number in range(24)]
    model = nn.Sequential(*blocks, nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    inputs = torch.randn(16_384, 512, device="cuda")
    labels = torch.randint(10, (16_384,), device="cuda")
    for step in range(args.steps):
        first = step % 8 * 2048
        x, y = inputs[first : first + 2048], labels[first : first + 2048]
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
